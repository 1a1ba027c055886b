package body

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/form"
	"gateway/shared/relay/routes"
)

// take reads the body of a request as its route requires.
func take(b *Body) error {
	if err := readID(b); err != nil {
		return err
	}
	switch {
	case b.Req.Route.Protocol() != nil:
		if bodiless(b) {
			return nil
		}
		return readAll(b)
	case b.Req.Route.BodyMode == routes.Resource:
		return nil
	case b.Req.Route.BodyMode == routes.Socket:
		return takeSocket(b)
	case b.Req.Route.BodyMode == routes.Multipart:
		b.Size = max(b.Req.Req.ContentLength, 0)
		return readForm(b)
	}
	kind, err := contentType(b)
	if err != nil {
		return err
	}
	if enc := admission.SingleHeader(b.Req.Req.Header, "Content-Encoding"); enc != "" && enc != "identity" && b.Req.Route.BodyMode == routes.Unified {
		return fault.Invalid("content-encoding", "must be identity or omitted: this route does not accept compressed bodies")
	}
	b.Size = max(b.Req.Req.ContentLength, 0)
	if bodiless(b) {
		return nil
	}
	if b.Req.Route.BodyMode == routes.Raw && kind != "application/json" {
		b.UnknownModel = b.Req.Req.ContentLength != 0
		if b.UnknownModel && b.Req.Req.Method == http.MethodPost {
			SetUnits(&b.ClientDemands, UnitsOf(b.RawPath(), nil, b.Req.Req.ContentLength))
		}
		return nil // streamed through
	}
	if err := readAll(b); err != nil {
		return err
	}
	switch {
	case b.Req.Route.BodyMode == routes.Raw:
		return walkRaw(b)
	case b.Req.Route.Prompt() != nil:
		return readPrompt(b)
	case b.Req.Route.SecretFormat() != 0:
		return readWanted(b)
	}
	return walkBody(b)
}

// readID reads the variable of the route's path. It may name a saved provider as a model does:
// @slug/id.
func readID(b *Body) error {
	if b.Req.PathID == "" {
		return nil
	}
	id, err := url.PathUnescape(b.Req.PathID)
	if err != nil {
		return fault.Invalid("id", "id has invalid percent-encoding")
	}
	for i := range len(id) {
		if id[i] < 0x20 || id[i] == 0x7f {
			return fault.Invalid("id", "id must not contain control characters")
		}
	}
	if len(id) > 2048 {
		return fault.Invalid("id", "id must have at most 2048 bytes")
	}
	if rest, ok := strings.CutPrefix(id, "@"); ok && b.Req.Route.Prompt() == nil {
		slug, name, ok := strings.Cut(rest, "/")
		if !ok || slug == "" || name == "" {
			return fault.Invalid("id", "a saved provider is named as @slug/id")
		}
		b.Slug, id = slug, name
	}
	b.ID = id
	return nil
}

// readWanted reads a request for a client secret.
func readWanted(b *Body) (err error) {
	if b.SecretRequest, err = admission.ReadSecretRequest(b.Req.Route.SecretFormat(), b.In); err != nil {
		return err
	}
	b.Transcribes = b.SecretRequest.Transcribes
	return splitModel(b, b.SecretRequest.Model, true)
}

// readAll reads the complete body into memory.
func readAll(b *Body) error {
	limit := b.Req.Route.BodyLimit()
	b.inBuf = buffer.For(int(min(b.Req.Req.ContentLength, limit)) + 1)
	err := b.inBuf.ReadAll(b.Req.Ctx, b.Req.Lease, b.Req.Req.Body, b.Req.Req.ContentLength, limit)
	switch {
	case err == nil:
	case errors.Is(err, buffer.ErrTooLarge):
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	case fault.Is(err, fault.ServiceUnavailable):
		return err
	default:
		return Unreadable(err)
	}
	b.In = b.inBuf.B
	b.Size = int64(len(b.In))
	return nil
}

// bodiless reports whether there is no body to read: operations that read or delete have none,
// but a provider's own path may.
func bodiless(b *Body) bool {
	switch b.Req.Req.Method {
	case http.MethodGet, http.MethodDelete, http.MethodHead:
		return b.Req.Route.BodyMode != routes.Raw || b.Req.Req.ContentLength == 0
	}
	return false
}

// contentType returns the media type of the body. Unified routes accept JSON; an absent type
// counts as JSON. Pass-through accepts any.
func contentType(b *Body) (string, error) {
	v := admission.SingleHeader(b.Req.Req.Header, "Content-Type")
	if v == "" || v == "application/json" {
		return "application/json", nil
	}
	kind, _, err := mime.ParseMediaType(v)
	if err != nil {
		if b.Req.Route.BodyMode == routes.Raw {
			return "", nil
		}
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: it cannot be parsed; send application/json")
	}
	if kind != "application/json" && b.Req.Route.BodyMode == routes.Unified && b.Req.Req.Method == http.MethodPost {
		return "", fault.New(fault.InvalidContentType, "content-type", "Invalid content type passed: this route accepts application/json")
	}
	return kind, nil
}

// Unreadable returns the fault for a client's body that did not arrive completely.
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
		return fault.New(fault.RequestTimeout, "body", "The body did not arrive in time")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Invalid("body", "ended before its content-length")
	}
	return fault.Invalid("body", "could not be read to its end").WithCause(err)
}

// readForm reads a multipart body: completely into memory if it is small, else its fields up to
// the first file, with the rest left in the request.
func readForm(b *Body) error {
	boundary, err := form.BoundaryOf(admission.SingleHeader(b.Req.Req.Header, "Content-Type"))
	if err != nil {
		return err
	}
	limit, length := b.Req.Route.BodyLimit(), b.Req.Req.ContentLength
	if length > limit {
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	}
	room := form.FormMemory(length)
	if room > egress.Uncounted {
		if err := b.Req.Lease.Reserve(b.Req.Ctx, room); err != nil {
			return err
		}
	}
	b.inBuf = buffer.For(int(min(room, buffer.Most)))
	f, err := form.ReadForm(b.Req.Req.Body, boundary, length, b.inBuf.B)
	if err != nil {
		return unreadForm(err)
	}
	if head := f.Head(); cap(head) != cap(b.inBuf.B) {
		b.inBuf.Free()
		b.inBuf = &buffer.Buffer{B: head}
	}
	b.Form = f
	if f.Complete() {
		b.In = f.Head()
		b.Size = int64(len(b.In))
	} else {
		b.inBuf = nil // the transport may read its bytes after the request is over
	}
	if !b.Req.Route.NoOutput {
		b.ClientDemands.MaxOutput, b.ClientDemands.OutAssumed = routes.DefaultReserveOutput, true
	}
	return takeForm(b)
}

// unreadForm returns the fault for a form that could not be read.
func unreadForm(err error) error {
	var long form.TooLong
	var broken form.ReadError
	switch {
	case errors.As(err, &long):
		return fault.Newf(fault.BodyTooLarge, "body", "has more than %d bytes of fields before its first file", int64(long))
	case errors.As(err, &broken):
		return Unreadable(broken.Err)
	}
	return err
}

// takeForm copies the fields that routing and accounting need, and checks their limits.
func takeForm(b *Body) error {
	if v, ok := b.Form.Get("stream"); ok {
		if v != "true" && v != "false" {
			return fault.Invalid("stream", `stream must be "true" or "false"`)
		}
		b.ClientDemands.Stream = v == "true"
	}
	if b.Req.Route.CheckForm != nil {
		if err := b.Req.Route.CheckForm(b.Form); err != nil {
			return err
		}
	}
	if b.Req.Route.UnitsOf != nil {
		field := func(name string) string {
			v, _ := b.Form.Get(name)
			return v
		}
		b.ClientDemands.Units = b.Req.Route.UnitsOf(field, max(b.Req.Req.ContentLength, int64(len(b.Form.Head()))))
	}
	if b.Req.Route.NoModel {
		return nil
	}
	name, ok := b.Form.Get("model")
	if name == "" {
		if taken, err := formDeployment(b); taken {
			return err
		}
	}
	if !ok {
		if b.Req.Route.DefaultModel != "" {
			name = b.Req.Route.DefaultModel
		} else if b.Form.Complete() {
			return fault.Invalid("model", "model is required")
		}
		b.Model = name
		b.UnknownModel = !b.Form.Complete() && name == ""
		return nil
	}
	if name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return splitModel(b, name, true)
}
