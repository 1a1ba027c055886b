package gemini

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// finishReason is this dialect's word for a stop.
func finishReason(stop chat.StopReason, native string) string {
	if s, failed := stopReason(native); s != chat.StopUnknown && s == stop && !failed {
		return native
	}
	switch stop {
	case chat.StopLength, chat.StopContext:
		return "MAX_TOKENS"
	case chat.StopFilter:
		return "SAFETY"
	case chat.StopMalformed:
		return "MALFORMED_FUNCTION_CALL"
	case chat.StopUnknown:
		return "OTHER"
	}
	return "STOP"
}

// tail writes usage and names, and closes.
func tail(dst []byte, id, model string, u *pricing.Usage, o *chat.Options) []byte {
	if u != nil && u.IsReported() {
		dst = append(dst, `,"usageMetadata":`...)
		dst = appendUsage(dst, u)
	}
	if model == "" {
		model = o.Model
	}
	id = o.ResponseID(id, "")
	dst = append(dst, `,"modelVersion":`...)
	dst = wire.AppendJSONString(dst, model)
	dst = append(dst, `,"responseId":`...)
	dst = wire.AppendJSONString(dst, id)
	return append(dst, '}')
}

func encodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	dst = append(dst, `{"candidates":[`...)
	for i := range r.Choices {
		c := &r.Choices[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"content":{"parts":[`...)
		n := 0
		for j := range c.Parts {
			before := len(dst)
			if n > 0 {
				dst = append(dst, ',')
			}
			start := len(dst)
			if dst = appendPart(dst, &c.Parts[j], o); len(dst) == start {
				dst = dst[:before]
				continue
			}
			n++
		}
		dst = append(dst, `],"role":"model"},"finishReason":"`...)
		dst = append(dst, finishReason(c.Stop, c.Native)...)
		dst = append(dst, `","index":`...)
		dst = strconv.AppendInt(dst, int64(c.Index), 10)
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	return tail(dst, r.ID, r.Model, &r.Usage, o)
}

// appendPart writes one part, or nothing if this shape has no place for it.
func appendPart(dst []byte, p *chat.Part, o *chat.Options) []byte {
	switch p.Kind {
	case chat.Text, chat.Refusal:
		dst = append(dst, `{"text":`...)
		dst = wire.AppendJSONString(dst, p.Text)
		return append(dst, '}')
	case chat.Reasoned, chat.RedactedReasoned:
		return appendThought(dst, wire.AppendJSONString(nil, p.Text), sealSigned(p, o.Origin))
	case chat.Image:
		return appendImage(dst, p.Media)
	case chat.Call:
		return appendCall(dst, p.Call.ID, o.ToolName(p.Call.Name), p.Call.Arguments)
	}
	return dst
}

// appendThought writes a part of thinking with a JSON string as text, or nothing if it
// has neither a text nor a signature.
func appendThought(dst, text []byte, signature string) []byte {
	if len(text) <= 2 && signature == "" {
		return dst
	}
	dst = append(append(append(dst, `{"text":`...), text...), `,"thought":true`...)
	if signature != "" {
		dst = append(dst, `,"thoughtSignature":`...)
		dst = wire.AppendJSONString(dst, signature)
	}
	return append(dst, '}')
}

// appendImage writes an image: its data, or the address of the file.
func appendImage(dst []byte, m *chat.Media) []byte {
	mime := m.MIME
	if mime == "" {
		mime = mimeOf(m.URL, "image/png")
	}
	if m.Data != "" {
		dst = wire.AppendJSONString(append(dst, `{"inlineData":{"mimeType":`...), mime)
		dst = wire.AppendJSONString(append(dst, `,"data":`...), m.Data)
	} else {
		dst = wire.AppendJSONString(append(dst, `{"fileData":{"mimeType":`...), mime)
		dst = wire.AppendJSONString(append(dst, `,"fileUri":`...), m.URL)
	}
	return append(dst, "}}"...)
}

// appendCall writes a call, or nothing if its arguments are not a JSON object.
func appendCall(dst []byte, id, tool, args string) []byte {
	if args = chat.ObjectArguments(args); args == "" {
		return dst // an invented call would be run
	}
	dst = append(dst, `{"functionCall":{"id":`...)
	dst = wire.AppendJSONString(dst, id)
	dst = append(dst, `,"name":`...)
	dst = wire.AppendJSONString(dst, tool)
	dst = append(dst, `,"args":`...)
	dst = append(dst, args...)
	return append(dst, `}}`...)
}

// streamEncoder writes the chunks of one stream. A call is held until it is complete.
type streamEncoder struct {
	o         chat.Options
	id, model string
	usage     pricing.Usage
	calls     map[[2]int]*pendingCall
	ends      []ending // written last, because usage may come after them
}

// ending is how a choice has ended.
type ending struct {
	choice int
	finish string
}

type pendingCall struct {
	id, name string
	args     []byte
}

// chunk writes one event with one part of a choice.
func (s *streamEncoder) chunk(dst []byte, choice int, part, finish string, u *pricing.Usage) []byte {
	dst = append(dst, `data: {"candidates":[{"content":{"parts":[`...)
	dst = append(dst, part...)
	dst = append(dst, `],"role":"model"}`...)
	if finish != "" {
		dst = append(append(append(dst, `,"finishReason":"`...), finish...), '"')
	}
	dst = append(dst, `,"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	dst = append(dst, `}]`...)
	dst = tail(dst, s.id, s.model, u, &s.o)
	return append(dst, "\r\n\r\n"...)
}

// Append implements chat.StreamEncoder.
func (s *streamEncoder) Append(dst []byte, d *chat.Delta) []byte {
	switch d.Kind {
	case chat.DeltaStart:
		s.id, s.model = d.ID, d.Model
		if d.Usage != nil {
			s.usage = *d.Usage
		}
	case chat.DeltaText, chat.DeltaRefusal:
		return s.chunk(dst, d.Choice, `{"text":`+string(d.JSON)+`}`, "", nil)
	case chat.DeltaThinking:
		return s.chunk(dst, d.Choice, string(appendThought(nil, d.JSON, "")), "", nil)
	case chat.DeltaSignature, chat.DeltaRedacted:
		part := chat.Part{Kind: chat.Reasoned, Signature: d.Text()}
		if d.Kind == chat.DeltaRedacted {
			part = chat.Part{Kind: chat.RedactedReasoned, Data: d.Text()}
		}
		if signature := sealSigned(&part, s.o.Origin); signature != "" {
			return s.chunk(dst, d.Choice, string(appendThought(nil, []byte(`""`), signature)), "", nil)
		}
	case chat.DeltaImage:
		return s.chunk(dst, d.Choice, string(appendImage(nil, chat.ReadImage(d.Text()))), "", nil)
	case chat.DeltaToolStart:
		if s.calls == nil {
			s.calls = make(map[[2]int]*pendingCall)
		}
		s.calls[[2]int{d.Choice, d.Call}] = &pendingCall{id: d.ID, name: s.o.ToolName(d.Name)}
	case chat.DeltaToolArgs:
		if c := s.calls[[2]int{d.Choice, d.Call}]; c != nil {
			c.args = wire.AppendUnquoted(c.args, d.JSON)
		}
	case chat.DeltaBlockStop:
		return s.write(dst, d.Choice, d.Call)
	case chat.DeltaStop:
		for n := range len(s.calls) {
			dst = s.write(dst, d.Choice, n)
		}
		s.ends = append(s.ends, ending{d.Choice, finishReason(d.Stop, d.Native)})
	case chat.DeltaUsage:
		s.usage = *d.Usage
	}
	return dst
}

// write writes a call once it is complete.
func (s *streamEncoder) write(dst []byte, choice, call int) []byte {
	c := s.calls[[2]int{choice, call}]
	if c == nil {
		return dst
	}
	s.calls[[2]int{choice, call}] = nil
	part := appendCall(nil, c.id, c.name, string(c.args))
	if part == nil {
		return dst
	}
	return s.chunk(dst, choice, string(part), "", nil)
}

// Finish implements chat.StreamEncoder.
func (s *streamEncoder) Finish(dst []byte) []byte {
	if len(s.ends) == 0 { // the provider sent none, but the usage goes with it
		s.ends = append(s.ends, ending{0, "STOP"})
	}
	for _, e := range s.ends {
		dst = s.chunk(dst, e.choice, "", e.finish, &s.usage)
	}
	return dst
}

// Error implements chat.StreamEncoder.
func (s *streamEncoder) Error(dst []byte, f *fault.Fault) []byte {
	return Generate{}.AppendStreamError(dst, f, &s.o)
}

// Reasoning that another provider signed reaches clients of this shape as thoughtSignature of a
// thinking part, and comes back in it. The field holds bytes, so the mark that specifies who signed
// is in base64.

const (
	signatureOf = "s." // signature of the part's text
	hiddenData  = "d." // reasoning that only its provider can read
)

// sealSigned returns the thoughtSignature of a part that origin's provider signed, "" for a part
// without a signature.
func sealSigned(p *chat.Part, origin string) string {
	if p.Origin != "" {
		origin = p.Origin
	}
	kind, value := signatureOf, p.Signature
	if p.Kind == chat.RedactedReasoned {
		kind, value = hiddenData, p.Data
	}
	if value == "" {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(chat.MarkSigned(origin, kind+value)))
}

// openSigned returns the part, without its text, of which sealSigned gave a client the signature.
// ok is false for a signature of a Gemini model.
func openSigned(signature string) (p chat.Part, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return p, false
	}
	origin, value, ok := chat.UnmarkSigned(string(raw))
	if !ok {
		return p, false
	}
	if data, hidden := strings.CutPrefix(value, hiddenData); hidden {
		return chat.Part{Kind: chat.RedactedReasoned, Origin: origin, Data: data}, true
	}
	value, ok = strings.CutPrefix(value, signatureOf)
	return chat.Part{Kind: chat.Reasoned, Origin: origin, Signature: value}, ok
}

var _ chat.Unmarker = Generate{}

var (
	// encodedMark is the beginning of a thoughtSignature that sealSigned made, in base64.
	encodedMark = []byte(`"Z3cxO`)
	signedKeys  = wire.NewKeySet("thoughtSignature", "thought_signature", "thought")
)

// Unmark implements chat.Unmarker. A call keeps the value for calls that another model has made.
func (Generate) Unmark(body []byte) ([]byte, []chat.LostField) {
	if !bytes.Contains(body, encodedMark) {
		return body, nil
	}
	edits, lost := chat.UnmarkBlocks(body, "contents", "parts", func(part []byte, at wire.Span) (e wire.Edit, ok bool) {
		var w wire.Walk
		if signedKeys.Walk(part, &w) != nil {
			return e, false
		}
		for _, v := range w.Spans[:2] {
			if !v.Present(part) || wire.KindOf(v.Of(part)) != wire.KindString {
				continue
			}
			signature, err := wire.ScanString(v.Of(part), "thoughtSignature")
			if _, marked := openSigned(signature); err != nil || !marked {
				continue
			}
			if thought := w.Spans[2]; thought.Present(part) && string(thought.Of(part)) == "true" {
				return wire.Delete(at), true
			}
			return wire.Replace(wire.Span{Start: at.Start + v.Start, End: at.Start + v.End}, wire.AppendJSONString(nil, placeholderSignature)), true
		}
		return e, false
	})
	if len(edits) == 0 {
		return body, nil
	}
	return wire.Splice(nil, body, edits...), lost
}
