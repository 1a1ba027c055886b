package gemini

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// stopReason parses a finishReason. failed reports that nothing useful was generated.
func stopReason(native string) (stop chat.StopReason, failed bool) {
	switch native {
	case "STOP":
		return chat.StopEnd, false
	case "MAX_TOKENS":
		return chat.StopLength, false
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR":
		return chat.StopFilter, false
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE":
		return chat.StopUnknown, true
	}
	return chat.StopUnknown, false
}

// callStop returns the stop reason of a choice: a turn with calls waits for them. Valid calls
// remain even if another call beside them failed.
func callStop(native string, calls int) (stop chat.StopReason, failed bool) {
	stop, failed = stopReason(native)
	switch {
	case calls > 0 && (failed || stop == chat.StopEnd):
		return chat.StopToolCalls, false
	}
	return stop, failed
}

// head is what a response, or a chunk of one, holds beside its candidates.
type head struct {
	id, model  string
	blocked    string // why the prompt was not answered
	candidates []byte
	counted    []byte // usageMetadata, not read yet
	usage      counts
	failed     bool // it contains an error object
	known      bool // a field of a response was seen
}

func (h *head) read(d *wire.Decoder) {
	h.candidates, h.counted = nil, nil
	for key := range d.Object {
		switch string(key) {
		case "candidates":
			h.known = true
			if d.Kind() == wire.KindArray {
				h.candidates = d.Raw()
			}
		case "promptFeedback":
			h.known = true
			if d.Kind() == wire.KindObject {
				for inner := range d.Object {
					if string(inner) == "blockReason" {
						h.blocked = optString(d)
					}
				}
			}
		case "usageMetadata":
			h.known = true
			if d.Kind() == wire.KindObject {
				h.counted = d.Raw()
			}
		case "modelVersion":
			readRepeated(d, &h.model)
		case "responseId":
			readRepeated(d, &h.id)
		case "error":
			h.failed = true
		}
	}
}

// count reads the usageMetadata that read has found. Counts that are missing in it keep
// their earlier value.
func (h *head) count() {
	if h.counted != nil {
		h.usage.readFrom(wire.NewDecoder(h.counted))
		h.counted = nil
	}
}

// readRepeated reads a string that is mostly the same as the one that s already holds.
func readRepeated(d *wire.Decoder, s *string) {
	if d.Kind() != wire.KindString {
		return
	}
	if b := d.Bytes(); len(b) > 0 && string(b) != *s {
		*s = string(b)
	}
}

// callIDs returns ids to calls that the provider gave none. Reading the same response again
// gives the same ids.
type callIDs struct{ response string }

func (c *callIDs) id(own, answer string, choice, call int) string {
	if own != "" {
		return own
	}
	if c.response == "" {
		if c.response = answer; answer == "" {
			c.response = rand.Text()
		}
	}
	sum := sha256.Sum256([]byte(c.response + "/" + strconv.Itoa(choice) + "/" + strconv.Itoa(call)))
	return "call_" + hex.EncodeToString(sum[:12])
}

func clone(raw []byte) json.RawMessage {
	if raw == nil {
		return nil
	}
	return append(json.RawMessage(nil), raw...)
}

// decodeResponse reads a complete response.
func decodeResponse(body []byte, t *chat.Traits) (*chat.Response, *fault.Fault) {
	d := wire.NewDecoder(body)
	var h head
	if d.Kind() == wire.KindObject {
		h.read(d)
	}
	err := d.End()
	switch {
	case err == nil && (h.failed || wire.KindOf(body) == wire.KindArray && readError(body) != nil):
		return nil, inBandError(body)
	case err != nil || !h.known:
		return nil, invalidResponse(err)
	}
	r := &chat.Response{ID: h.id, Model: h.model}
	var found int64
	if h.candidates != nil {
		var c candidate
		var ids callIDs
		in := wire.NewDecoder(h.candidates)
		for i := range in.Array {
			c.read(in, i)
			choice, failed := c.choice(t, &ids, h.id)
			if failed != nil {
				return nil, failed
			}
			found += c.searches
			r.Choices = append(r.Choices, choice)
		}
	}
	if len(r.Choices) == 0 {
		if h.blocked == "" {
			return nil, invalidResponse(nil)
		}
		// A blocked prompt has no candidates, and is answered with a choice that reports it.
		r.Choices = []chat.Choice{{Stop: chat.StopFilter, Native: h.blocked}}
	}
	h.count()
	r.ReportedTotal = h.usage.classes(&r.Usage, billed(found, t))
	r.Mode = h.usage.mode
	return r, nil
}

// placeholderSignature is the documented value for calls with an unknown signature because another
// model or a person wrote them.
const placeholderSignature = "skip_thought_signature_validator"

// signer is the host that signs: no host takes another's signatures.
func signer(t *chat.Traits) string {
	if t.Provider == "" {
		return name
	}
	return t.Provider
}

// mark returns a signature as clients and memories keep it.
func mark(t *chat.Traits, signature string) string {
	if signature == "" {
		return ""
	}
	return chat.MarkSigned(signer(t), signature)
}

// own takes a signature back; "" when this host did not make it.
func own(t *chat.Traits, marked string) string {
	by, value, ok := chat.UnmarkSigned(marked)
	if ok && by == name { // it was marked a second time, with the dialect
		if inner, v, again := chat.UnmarkSigned(value); again {
			by, value = inner, v
		}
	}
	if !ok || by != signer(t) {
		return ""
	}
	return value
}

// signed are the signatures of the parts of one message as the provider had
// them.
type signed struct {
	of []string
	// moved marks thinking parts with a signature that went to the part after them.
	moved []bool
}

// maxRecalls bounds the tool calls that are looked up for one request. The oldest are
// omitted; no model insists on their signatures.
const maxRecalls = 64

// signatures restores signatures. An empty thinking part signs the part after it.
// Signatures that the client did not return are looked up by the call's id. If the first
// call of a turn still has none, it gets the placeholder if the model requires one.
func signatures(e *requestEncoder, m *chat.Message) signed {
	s := signed{of: make([]string, len(m.Parts)), moved: make([]bool, len(m.Parts))}
	if m.Role != chat.Assistant {
		return s
	}
	var pending []int // empty thinking parts with a signature that waits for a call
	firstCall := true
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == chat.Reasoned && p.Signature != "":
			if s.of[i] = own(e.t, p.Signature); s.of[i] == "" {
				e.loss.Add(path(m, p)+".signature", "made by another provider")
			} else if p.Text == "" {
				pending = append(pending, i)
			}
		case p.Kind == chat.Call:
			s.of[i] = callSignature(e, p.Call)
			if len(pending) > 0 {
				from := pending[0]
				pending = pending[1:]
				s.moved[from] = true
				if s.of[i] == "" {
					s.of[i] = s.of[from]
				}
			}
			if s.of[i] == "" && firstCall {
				s.of[i] = recalled(e, p.Call.ID)
			}
			if s.of[i] == "" && firstCall && e.t.SignedCalls {
				s.of[i] = placeholderSignature
			}
			firstCall = false
		case p.Kind == chat.Text || p.Kind == chat.Image || p.Kind == chat.Foreign:
			// Clients of the OpenAI shape give blocks and calls separately: a signature belongs
			// to the part directly after it, unless a call follows at the end.
			if n := len(pending); n > 0 && pending[n-1] == i-1 {
				s.of[i], s.moved[i-1] = s.of[i-1], true
				pending = pending[:n-1]
			}
		}
	}
	return s
}

// callSignature is the signature that a client gave back with the call itself.
func callSignature(e *requestEncoder, c *chat.ToolCall) string {
	if c.Signature == "" {
		return ""
	}
	if _, _, marked := chat.UnmarkSigned(c.Signature); !marked {
		return c.Signature // the provider's value, kept by the client
	}
	return own(e.t, c.Signature)
}

// planRecalls counts the turns with calls that will not be looked up.
func planRecalls(e *requestEncoder) {
	e.unrecalled = -maxRecalls
	for i := range e.r.Messages {
		for j := range e.r.Messages[i].Parts {
			if e.r.Messages[i].Parts[j].Call != nil {
				e.unrecalled++
				break
			}
		}
	}
}

// recalled looks up the stored signature of the first call of a turn, for a client that
// cannot return it.
func recalled(e *requestEncoder, id string) string {
	if e.unrecalled--; e.r.LoadReasoning == nil || id == "" || e.unrecalled >= 0 {
		return ""
	}
	for _, p := range e.r.LoadReasoning(id) {
		if p.Kind == chat.Reasoned && p.Text == "" {
			if v := own(e.t, p.Signature); v != "" {
				return v
			}
		}
	}
	return ""
}
