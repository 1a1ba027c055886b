package inbound

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"

	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/ephemeral"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/units"
)

// reader reads the body of a request, in the way of its route, and fills in what is found.
// The stages behind it see only what was read.
type reader struct{ body *Body }

func (b reader) take() error {
	if err := b.readID(); err != nil {
		return err
	}
	switch {
	case b.body.Req.Route.Protocol != nil:
		if b.bodiless() {
			return nil
		}
		return b.readAll()
	case b.body.Req.Route.Shape == routes.Resource:
		return nil
	case b.body.Req.Route.Shape == routes.Socket:
		return b.takeSocket()
	case b.body.Req.Route.Shape == routes.Multipart:
		b.body.Size = max(b.body.Req.Req.ContentLength, 0)
		return b.readForm()
	}
	kind, err := b.contentType()
	if err != nil {
		return err
	}
	if enc := asked.One(b.body.Req.Req.Header, "Content-Encoding"); enc != "" && enc != "identity" && b.body.Req.Route.Shape == routes.Unified {
		return fault.Invalid("content-encoding", "must be identity or left out: this route takes bodies as they are")
	}
	b.body.Size = max(b.body.Req.Req.ContentLength, 0)
	if b.bodiless() {
		return nil
	}
	if b.body.Req.Route.Shape == routes.Raw && kind != "application/json" {
		b.body.Unread = b.body.Req.Req.ContentLength != 0
		if b.body.Unread && b.body.Req.Req.Method == http.MethodPost {
			SetUnits(&b.body.Own, units.Demand(b.body.RawPath(), nil, b.body.Req.Req.ContentLength))
		}
		return nil // streamed through
	}
	if err := b.readAll(); err != nil {
		return err
	}
	switch {
	case b.body.Req.Route.Shape == routes.Raw:
		return b.walkRaw()
	case b.body.Req.Route.Prompt != nil:
		return b.readPrompt()
	case b.body.Req.Route.Mints != 0:
		return b.readWanted()
	}
	return b.walkBody()
}

// readID reads the variable of the route's path. A saved provider may be named
// in it as in a model: @slug/id.
func (b reader) readID() error {
	if b.body.Req.PathID == "" {
		return nil
	}
	id, err := url.PathUnescape(b.body.Req.PathID)
	if err != nil {
		return fault.Invalid("id", "id is not well escaped")
	}
	for i := range len(id) {
		if id[i] < 0x20 || id[i] == 0x7f {
			return fault.Invalid("id", "id must not contain control characters")
		}
	}
	if len(id) > 2048 {
		return fault.Invalid("id", "id must have at most 2048 bytes")
	}
	if rest, ok := strings.CutPrefix(id, "@"); ok && b.body.Req.Route.Prompt == nil {
		slug, name, ok := strings.Cut(rest, "/")
		if !ok || slug == "" || name == "" {
			return fault.Invalid("id", "a saved provider is named as @slug/id")
		}
		b.body.Slug, id = slug, name
	}
	b.body.ID = id
	return nil
}

// readWanted reads which client secret is asked for.
func (b reader) readWanted() (err error) {
	if b.body.Minting, err = ephemeral.Read(b.body.Req.Route.Mints, b.body.In); err != nil {
		return err
	}
	b.body.Transcribes = b.body.Minting.Transcribes
	return b.splitModel(b.body.Minting.Model, true)
}

// readAll takes the whole body into memory.
func (b reader) readAll() error {
	limit := b.body.Req.Route.BodyLimit()
	b.body.inBuf = buffer.For(int(min(b.body.Req.Req.ContentLength, limit)) + 1)
	err := b.body.inBuf.ReadAll(b.body.Req.Ctx, b.body.Req.Lease, b.body.Req.Req.Body, b.body.Req.Req.ContentLength, limit)
	switch {
	case err == nil:
	case errors.Is(err, buffer.ErrTooLarge):
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	case fault.Is(err, fault.ServiceUnavailable):
		return err
	default:
		return Unreadable(err)
	}
	b.body.In = b.body.inBuf.B
	b.body.Size = int64(len(b.body.In))
	return nil
}

// bodiless tells whether there is no body to read: operations that read or delete
// have none, but a provider's own path may.
func (b reader) bodiless() bool {
	switch b.body.Req.Req.Method {
	case http.MethodGet, http.MethodDelete, http.MethodHead:
		return b.body.Req.Route.Shape != routes.Raw || b.body.Req.Req.ContentLength == 0
	}
	return false
}

// contentType gives the media type of the body. Unified routes take JSON; an
// absent type counts as JSON. Pass-through takes any.
func (b reader) contentType() (string, error) {
	v := asked.One(b.body.Req.Req.Header, "Content-Type")
	if v == "" || v == "application/json" {
		return "application/json", nil
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		if b.body.Req.Route.Shape == routes.Raw {
			return "", nil
		}
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: it cannot be parsed; send application/json")
	}
	if kind != "application/json" && b.body.Req.Route.Shape == routes.Unified && b.body.Req.Req.Method == http.MethodPost {
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: this route takes application/json")
	}
	return kind, nil
}

// Unreadable says why a client's body did not arrive whole.
func Unreadable(err error) *fault.Fault {
	var known *fault.Fault
	if errors.As(err, &known) {
		return known
	}
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", tooBig.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.New(fault.RequestTimeout, "body", "The body stopped coming before its end")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Invalid("body", "ended before the announced content-length")
	}
	return fault.Invalid("body", "could not be read to its end").WithCause(err)
}
