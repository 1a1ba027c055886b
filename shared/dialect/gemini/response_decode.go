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

// head is what an answer, or a chunk of one, holds beside its candidates.
type head struct {
	id, model  string
	blocked    string // why the prompt was not answered
	candidates []byte
	counted    []byte // usageMetadata, not read yet
	usage      counts
	failed     bool // it contains an error object
	known      bool // a member of an answer was seen
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
			keepString(d, &h.model)
		case "responseId":
			keepString(d, &h.id)
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

// keepString reads a string that is mostly the same as the one that s already holds.
func keepString(d *wire.Decoder, s *string) {
	if d.Kind() != wire.KindString {
		return
	}
	if b := d.Bytes(); len(b) > 0 && string(b) != *s {
		*s = string(b)
	}
}

// callIDs returns ids to calls that the provider gave none. Reading the same answer again
// gives the same ids.
type callIDs struct{ answer string }

func (c *callIDs) id(own, answer string, choice, call int) string {
	if own != "" {
		return own
	}
	if c.answer == "" {
		if c.answer = answer; answer == "" {
			c.answer = rand.Text()
		}
	}
	sum := sha256.Sum256([]byte(c.answer + "/" + strconv.Itoa(choice) + "/" + strconv.Itoa(call)))
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
		return nil, invalidAnswer(err)
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
			return nil, invalidAnswer(nil)
		}
		// A blocked prompt has no candidates, and is answered with a choice that says so.
		r.Choices = []chat.Choice{{Stop: chat.StopFilter, Native: h.blocked}}
	}
	h.count()
	r.ReportedTotal = h.usage.classes(&r.Usage, billed(found, t))
	r.Mode = h.usage.mode
	return r, nil
}
