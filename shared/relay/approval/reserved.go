package approval

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"strings"

	"gateway/shared/wire"
)

// LabelPrefix starts the labels of gateway-managed MCP servers.
const LabelPrefix = "@gateway-mcp/"

// item holds the fields that determine whether an item is reserved.
type item struct {
	Type    json.RawMessage `json:"type"`
	Label   json.RawMessage `json:"server_label"`
	Request json.RawMessage `json:"approval_request_id"`
}

// Reserved reports whether an item of a provider's response is one that only the gateway or its
// client may write: an item that a client sends back unchanged must not approve a call, or be
// accepted as a list, a call or a request by the gateway.
func Reserved(raw json.RawMessage) bool { return reserved(raw, false) }

// reserved is Reserved; sent: the item is one that the client may have sent itself, among them
// approvals of tools that the provider calls.
func reserved(raw json.RawMessage, sent bool) bool {
	var exact map[string]json.RawMessage
	var folded item // as case-insensitive parsers read it
	if json.Unmarshal(raw, &exact) != nil {
		return false
	}
	_ = json.Unmarshal(raw, &folded) // an object
	label := strings.HasPrefix(text(exact["server_label"]), LabelPrefix) || strings.HasPrefix(text(folded.Label), LabelPrefix)
	for _, kind := range [...]string{text(exact["type"]), text(folded.Type)} {
		switch kind {
		case "mcp_approval_response":
			if !sent || ours(text(exact["approval_request_id"])) || ours(text(folded.Request)) {
				return true
			}
		case "mcp_approval_request", "mcp_call", "mcp_list_tools":
			if label {
				return true
			}
		}
	}
	return false
}

// ours reports whether an id is that of a request by the gateway, which has a random part.
func ours(request string) bool {
	return strings.HasPrefix(request, Prefix) && ModelID(request) != strings.TrimPrefix(request, Prefix)
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // another format is none
	return s
}

// lists are the fields with items: of a response, and of a list of its input.
var lists = wire.NewKeySet("output", "data")

// Clean returns a response of a provider, or a list of its input items, without reserved items.
// A body that has none, or that is not an object, is returned unchanged; the error is for one in
// which they cannot be found, such as an object with a duplicate list.
func Clean(body []byte) ([]byte, error) {
	// Types may be escaped.
	if wire.KindOf(bytes.TrimLeft(body, " \t\r\n")) != wire.KindObject || !bytes.Contains(body, []byte("mcp_")) && !bytes.Contains(body, []byte(`\u`)) {
		return body, nil
	}
	var w wire.Walk
	if err := lists.Walk(body, &w); err != nil {
		return nil, err
	}
	var edits []wire.Edit
	for i := range lists.Keys() {
		span := w.Spans[i]
		var items []json.RawMessage
		if !span.Present(body) || json.Unmarshal(span.Of(body), &items) != nil {
			continue
		}
		kept := make([][]byte, 0, len(items))
		for _, raw := range items {
			if !reserved(raw, i > 0) {
				kept = append(kept, raw)
			}
		}
		if len(kept) < len(items) {
			list := append(append([]byte{'['}, bytes.Join(kept, []byte{','})...), ']')
			edits = append(edits, wire.Replace(span, list))
		}
	}
	if len(edits) == 0 {
		return body, nil
	}
	return wire.Splice(nil, body, edits...), nil
}

// ConcealStream is Conceal for a streamed body, such as an upload. The random parts are
// overwritten and not removed, so that the length of the body does not change. Nothing else is
// changed: only the gateway creates ids of this form.
func ConcealStream(src io.ReadCloser) io.ReadCloser { return &concealing{src: src} }

type concealing struct {
	src      io.ReadCloser
	buffered []byte // read but not returned
	safe     int    // bytes of held without an id
	err      error
}

// lengthOfID is the length of the start of an id, including its random part.
var lengthOfID = len(Prefix) + len(rand.Text()) + 1

// Read implements io.Reader.
func (c *concealing) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // an empty read never ends the loop below
	}
	for c.safe == 0 && c.err == nil {
		var n int
		n, c.err = c.src.Read(p)
		from := max(0, len(c.buffered)-lengthOfID)
		c.buffered = append(c.buffered, p[:n]...)
		overwrite(c.buffered[from:])
		if c.safe = max(0, len(c.buffered)-lengthOfID+1); c.err != nil {
			c.safe = len(c.buffered)
		}
	}
	if c.safe == 0 {
		return 0, c.err
	}
	n := copy(p, c.buffered[:c.safe])
	c.buffered, c.safe = append(c.buffered[:0], c.buffered[n:]...), c.safe-n
	return n, nil
}

// Close implements io.Closer.
func (c *concealing) Close() error { return c.src.Close() }

// overwrite overwrites the random parts of the ids in a text.
func overwrite(text []byte) {
	for {
		at := bytes.Index(text, []byte(Prefix))
		if at < 0 || len(text)-at < lengthOfID {
			return
		}
		secret := text[at+len(Prefix) : at+lengthOfID-1]
		if text[at+lengthOfID-1] == '_' && !bytes.ContainsFunc(secret, notBase32) {
			for i := range secret {
				secret[i] = 'A'
			}
		}
		text = text[at+len(Prefix):]
	}
}
