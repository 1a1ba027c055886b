// Package bytez is the wire of Bytez's POST /models/v2/{model}: messages of the
// OpenAI shape, settings under params, a response that is one message.
package bytez

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// Chat is POST /models/v2/{model}. It always requests a complete response: the provider's
// streams are bare text, in which the end of a response cannot be distinguished from a
// truncation.
type Chat struct{ upstream.Errors }

var _ chat.Provider = Chat{}

// Name implements chat.Dialect.
func (Chat) Name() string { return "bytez" }

// EncodeRequest implements chat.RequestWriter.
func (Chat) EncodeRequest(dst []byte, r *chat.Request, _ *chat.Traits, loss *chat.Loss) ([]byte, error) {
	if err := upstream.ReportLoss(r, loss, "temperature", "top_p", "top_k"); err != nil {
		return dst, err
	}
	o := upstream.Begin(dst)
	o.Key("params")
	o.Open('{')
	o.IntIf("max_new_tokens", r.MaxTokens)
	o.FloatIf("temperature", r.Temperature)
	o.FloatIf("top_p", r.TopP)
	o.IntIf("top_k", r.TopK)
	o.Close('}')
	o.Key("messages")
	o.Open('[')
	for i := range r.Messages {
		m := &r.Messages[i]
		text, err := upstream.Flat(m, loss)
		if err != nil {
			return dst, err
		}
		o.Open('{')
		o.Str("role", roles[m.Role])
		o.Str("content", text)
		o.Close('}')
	}
	o.Close(']')
	o.Close('}')
	return o.B, loss.Err()
}

var roles = map[chat.Role]string{chat.System: "system", chat.Developer: "system", chat.User: "user", chat.Assistant: "assistant", chat.ToolRole: "user"}

// DecodeResponse implements chat.ResponseReader: {error} or {output}, a message or its
// text. The provider reports neither usage nor why a response ended.
func (Chat) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	d := wire.NewDecoder(body)
	var parts []chat.Part
	failed := false
	for key := range d.Object {
		switch string(key) {
		case "error":
			failed = !d.Null()
		case "output":
			parts = output(d)
		}
	}
	switch {
	case d.End() != nil:
		return nil, upstream.Invalid("The provider's response is not JSON", d.End())
	case failed || parts == nil:
		return nil, upstream.InBand(body)
	}
	return &chat.Response{Choices: []chat.Choice{{Parts: parts}}}, nil
}

// output reads a text, a list of {type, text}, or a message that holds one.
func output(d *wire.Decoder) []chat.Part {
	switch d.Kind() {
	case wire.KindString:
		return []chat.Part{{Kind: chat.Text, Text: d.Str()}}
	case wire.KindArray:
		parts := []chat.Part{}
		for range d.Array {
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) == "text" {
					parts = append(parts, chat.Part{Kind: chat.Text, Text: upstream.OptString(d)})
				}
			}
		}
		return parts
	case wire.KindObject:
		var parts []chat.Part
		for key := range d.Object {
			if string(key) == "content" {
				parts = output(d)
			}
		}
		return parts
	}
	d.Skip()
	return nil
}

// NewStreamDecoder implements chat.ResponseReader.
func (w Chat) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder {
	return upstream.NewBufferedDecoder(w, t)
}
