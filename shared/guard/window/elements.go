package window

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard/content"
	"gateway/shared/wire"
)

// Elements judges the parts of a delta other than text, such as citations.
type Elements struct {
	// Held is what the client's format supports; the rest is not judged. Origin is the
	// provider's dialect.
	Held   chat.Held
	Origin string
	// Judge receives a response in the format of chat completions with the strings of the
	// delta. It returns the response to send instead, or nil to leave it unchanged.
	Judge func(body []byte) (now []byte, denied *fault.Fault)
}

// treatment is how a window handles a kind of delta.
type treatment uint8

const (
	exempt  treatment = iota + 1 // it contains no string that a window judges
	text                         // a piece of a text, which waits until enough of it has come
	element                      // its strings are judged on arrival
)

// treatments has a row for each kind of delta. Tool arguments and reasoning are exempt because
// a hook that judges them holds the stream.
var treatments = map[chat.DeltaKind]treatment{
	chat.DeltaStart:     element,
	chat.DeltaText:      text,
	chat.DeltaRefusal:   text,
	chat.DeltaThinking:  exempt,
	chat.DeltaSignature: exempt,
	chat.DeltaRedacted:  exempt,
	chat.DeltaCitation:  element,
	chat.DeltaForeign:   element,
	chat.DeltaImage:     element,
	chat.DeltaToolStart: element,
	chat.DeltaToolArgs:  exempt,
	chat.DeltaBlockStop: exempt,
	chat.DeltaStop:      element,
	chat.DeltaUsage:     exempt,
	chat.DeltaPing:      exempt,
}

// judge returns the delta to send in place of d. A change that cannot be written back into
// the delta is a denial.
func (e *Elements) judge(d *chat.Delta, deny func() *fault.Fault) (*chat.Delta, *fault.Fault) {
	body := e.response(d)
	if body == nil {
		return d, nil
	}
	switch now, denied := e.Judge(body); {
	case denied != nil:
		return nil, denied
	case now == nil:
		return d, nil
	default:
		changed, ok := withResponse(*d, now)
		if !ok {
			return nil, deny()
		}
		return &changed, nil
	}
}

// response returns a response that contains the strings of a delta; nil if it has none.
func (e *Elements) response(d *chat.Delta) []byte {
	field := func(dst []byte, name, value string) []byte {
		return wire.AppendJSONString(append(append(append(dst, '"'), name...), `":`...), value)
	}
	switch d.Kind {
	case chat.DeltaStart:
		if content.IsIdentifier(d.ID, d.Model) {
			return nil
		}
		return append(field(append(field([]byte{'{'}, "id", d.ID), ','), "model", d.Model), '}')
	case chat.DeltaCitation:
		if e.Held.Writes(d, e.Origin) {
			return append(append([]byte(`{"choices":[{"message":{"content":[{"type":"text","annotations":[`), d.JSON...), `]}]}}]}`...)
		}
	case chat.DeltaForeign:
		if e.Held.Writes(d, e.Origin) {
			return append(append([]byte(`{"choices":[{"message":{"content":[`), d.JSON...), `]}}]}`...)
		}
	case chat.DeltaImage:
		if e.Held.Writes(d, e.Origin) {
			return append(append([]byte(`{"choices":[{"message":{"content":[{"type":"image_url","image_url":{"url":`), d.JSON...), `}}]}}]}`...)
		}
	case chat.DeltaToolStart:
		if content.IsIdentifier(d.ID, d.Name, d.Signature) {
			return nil
		}
		out := field([]byte(`{"choices":[{"message":{"tool_calls":[{"type":"function",`), "id", d.ID)
		out = field(append(out, ','), "signature", d.Signature)
		return append(field(append(out, `,"function":{`...), "name", d.Name), `}}]}}]}`...)
	case chat.DeltaStop:
		if len(d.Extra) == 0 && content.IsIdentifier(d.Native, d.StopSequence) {
			return nil
		}
		out := field([]byte(`{"choices":[{`), "finish_reason", d.Native)
		if e.Held.Holds&chat.HoldsSequence != 0 {
			out = field(append(out, ','), "stop_sequence", d.StopSequence)
		}
		for _, x := range d.Extra {
			if e.Held.Holds&chat.HoldsExtra != 0 {
				out = wire.AppendJSONString(append(out, ','), x.Name)
				out = append(append(out, ':'), x.Raw...)
			}
		}
		return append(out, `}]}`...)
	}
	return nil
}

// withResponse returns a delta with the strings of a response that was created from it. ok is
// false if the response has another structure.
func withResponse(d chat.Delta, body []byte) (changed chat.Delta, ok bool) {
	var whole struct {
		ID, Model string
		Choices   []map[string]json.RawMessage
	}
	if json.Unmarshal(body, &whole) != nil {
		return d, false
	}
	if d.Kind == chat.DeltaStart {
		d.ID, d.Model = whole.ID, whole.Model
		return d, true
	}
	if len(whole.Choices) != 1 {
		return d, false
	}
	choice := whole.Choices[0]
	if d.Kind == chat.DeltaStop {
		extra := make([]chat.Field, 0, len(d.Extra))
		for _, x := range d.Extra {
			if raw := choice[x.Name]; raw != nil {
				extra = append(extra, chat.Field{Name: x.Name, Raw: raw})
			}
		}
		d.Extra = extra
		if raw := choice["stop_sequence"]; raw != nil && json.Unmarshal(raw, &d.StopSequence) != nil {
			return d, false
		}
		return d, json.Unmarshal(choice["finish_reason"], &d.Native) == nil
	}
	var message struct {
		Content   []json.RawMessage
		ToolCalls []struct {
			ID, Signature string
			Function      struct{ Name string }
		} `json:"tool_calls"`
	}
	if json.Unmarshal(choice["message"], &message) != nil {
		return d, false
	}
	switch {
	case d.Kind == chat.DeltaToolStart && len(message.ToolCalls) == 1:
		c := &message.ToolCalls[0]
		d.ID, d.Name, d.Signature = c.ID, c.Function.Name, c.Signature
		return d, true
	case d.Kind == chat.DeltaForeign && len(message.Content) == 1:
		d.JSON = message.Content[0]
		return d, wire.KindOf(d.JSON) == wire.KindObject
	case d.Kind == chat.DeltaImage && len(message.Content) == 1:
		var part struct {
			Image struct{ URL json.RawMessage } `json:"image_url"`
		}
		if json.Unmarshal(message.Content[0], &part) == nil {
			d.JSON = part.Image.URL
			return d, wire.KindOf(d.JSON) == wire.KindString
		}
	case d.Kind == chat.DeltaCitation && len(message.Content) == 1:
		var part struct{ Annotations []json.RawMessage }
		if json.Unmarshal(message.Content[0], &part) == nil && len(part.Annotations) == 1 {
			d.JSON = part.Annotations[0]
			return d, wire.KindOf(d.JSON) == wire.KindObject
		}
	}
	return d, false
}
