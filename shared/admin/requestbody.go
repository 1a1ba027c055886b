package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// requestBody is the body of a request, parsed as its route requires.
type requestBody struct {
	request *http.Request
	route   *Route
	raw     []byte // unparsed
}

// read reads the body, also for the audit record of a rejected call.
func (b *requestBody) read(w http.ResponseWriter) error {
	if b.route.Body == nil && !b.mayNameWorkspace() || b.request.Body == nil {
		return nil
	}
	limit := b.route.MaxBody
	if limit == 0 {
		limit = DefaultMaxBody
	}
	tooLarge := fault.Newf(fault.BodyTooLarge, "", "The body is larger than %d bytes", limit)
	if b.request.ContentLength > limit {
		return tooLarge // unread
	}
	var err error
	b.raw, err = readBody(http.MaxBytesReader(w, b.request.Body, limit), min(b.request.ContentLength, limit, maxAhead))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		b.raw = nil
		return tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.New(fault.RequestTimeout, "", "The connection failed before the end of the body")
	case err != nil:
		return fault.Invalid("", "The body ended early").WithCause(err)
	}
	return nil
}

// object parses a body that is one object; nil: there is none, or it is something else.
func (b *requestBody) object() (map[string]json.RawMessage, error) {
	if b.route.Body == nil || b.route.BodyMode == OptionalBody {
		if len(b.raw) == 0 {
			return nil, nil
		}
	}
	if ct := b.request.Header.Get("Content-Type"); ct != "" {
		media, _, err := mime.ParseMediaType(ct)
		if err != nil || !b.route.takes(media) {
			return nil, fault.New(fault.InvalidContentType, "content-type", "The body must be sent as "+b.route.consumes())
		}
		if media == formType {
			return parseForm(b.raw)
		}
	}
	if b.route.Unparsed {
		return nil, nil
	}
	if b.isList() {
		return nil, nil // see list
	}
	if len(bytes.TrimSpace(b.raw)) == 0 {
		return nil, fault.Invalid("", "The body is empty; a JSON object%s is expected", b.route.required())
	}
	return parseObject(b.raw)
}

// mayNameWorkspace reports whether a body may name the workspace although the route has no fields:
// every POST and PUT of the administration accepts workspace_id. A body that is not JSON is
// ignored there.
func (b *requestBody) mayNameWorkspace() bool {
	if b.route.Public || b.route.foreign() || b.request.Method != http.MethodPost && b.request.Method != http.MethodPut {
		return false
	}
	media, _, err := mime.ParseMediaType(b.request.Header.Get("Content-Type"))
	return err == nil && media == jsonType
}

// isList reports whether the body is a list of objects, where the route takes one.
func (b *requestBody) isList() bool {
	return b.route.MaxItems > 0 && bytes.HasPrefix(bytes.TrimSpace(b.raw), []byte("["))
}

// list reads a body that is a list.
func (b *requestBody) list() ([]map[string]json.RawMessage, error) {
	if !b.isList() {
		return nil, nil
	}
	if err := wire.CheckStrict(b.raw, maxBodyDepth); err != nil {
		return nil, err
	}
	if err := checkSurrogates(b.raw); err != nil {
		return nil, err
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(b.raw, &entries); err != nil {
		return nil, fault.Invalid("", "the body is not valid JSON")
	}
	if len(entries) == 0 || len(entries) > b.route.MaxItems {
		return nil, fault.Invalid("", "the body must be one object, or a list of 1 to %d, has %d", b.route.MaxItems, len(entries))
	}
	out := make([]map[string]json.RawMessage, len(entries))
	for i, raw := range entries {
		if raw[0] != '{' || json.Unmarshal(raw, &out[i]) != nil {
			return nil, fault.Invalid(fmt.Sprintf("[%d]", i), "must be an object")
		}
	}
	return out, nil
}

// checkSurrogates rejects \u escapes of half a surrogate pair in a checked JSON text. They
// encode no character: some readers replace them and others reject the text, so that a stored
// value would differ from the one read. The fault names the path of the first one.
func checkSurrogates(body []byte) error {
	for at := 0; ; {
		next := bytes.IndexByte(body[at:], '\\')
		if next < 0 {
			return nil
		}
		at += next
		first, ok := escaped(body[at:])
		switch {
		case !ok:
			at += 2 // the escape of one character, perhaps of a backslash
		case !utf16.IsSurrogate(first):
			at += escapeSize
		default:
			second, _ := escaped(body[at+escapeSize:])
			if utf16.DecodeRune(first, second) == utf8.RuneError {
				return fault.Invalid(wire.PathAt(body, at), "%s is half of a surrogate pair and represents no character", body[at:at+escapeSize])
			}
			at += 2 * escapeSize
		}
	}
}

const escapeSize = len(`\u0000`)

// escaped reads a \u escape at the front of b.
func escaped(b []byte) (rune, bool) {
	if len(b) < escapeSize || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:escapeSize]), 16, 16)
	return rune(n), err == nil
}

// maxAhead limits the memory that is reserved for a body before it arrives, in bytes.
const maxAhead = 512 << 10

// readBody reads a body of the expected length without growing its memory step by step; a
// negative length is unknown.
func readBody(r io.Reader, length int64) ([]byte, error) {
	if length <= 0 {
		return io.ReadAll(r)
	}
	b := bytes.NewBuffer(make([]byte, 0, length+bytes.MinRead)) // a read of the end needs space as well
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}
