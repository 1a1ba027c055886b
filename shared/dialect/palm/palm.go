// Package palm is the wire of Google's PaLM: chats of generateMessage, text completions of
// generateText and embeddings of embedText. The service reports no usage, seldom why an
// answer ended, and does not stream.
package palm

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Chat is POST /models/{model}:generateMessage.
type Chat struct{ upstream.Errors }

// Text is POST /models/{model}:generateText.
type Text struct{ upstream.Errors }

var (
	_ chat.Provider   = Chat{}
	_ chat.Provider   = Text{}
	_ chat.Translator = Embeddings{}
)

// Name implements chat.Dialect.
func (Chat) Name() string { return "palm" }

// Name implements chat.Dialect.
func (Text) Name() string { return "palm.text" }

// NewStreamDecoder implements chat.ResponseReader.
func (w Chat) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder {
	return upstream.NewBufferedDecoder(w, t)
}

// NewStreamDecoder implements chat.ResponseReader.
func (w Text) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder {
	return upstream.NewBufferedDecoder(w, t)
}

// maxCandidates is how many responses one request gives.
const maxCandidates = 8

// bounds rejects what the service rejects.
func bounds(r *chat.Request) error {
	switch {
	case r.N.Set && r.N.Value > maxCandidates:
		return fault.Invalid("n", "n must be at most %d for this provider", maxCandidates)
	case r.Temperature.Set && r.Temperature.Value > 1:
		return fault.Invalid("temperature", "temperature must be between 0 and 1 for this provider")
	}
	return nil
}

func sampling(o *upstream.Object, r *chat.Request) {
	o.FloatIf("temperature", r.Temperature)
	o.IntIf("candidateCount", r.N)
	o.FloatIf("topP", r.TopP)
	o.IntIf("topK", r.TopK)
}

// EncodeRequest implements chat.RequestWriter. System prompts become the context.
func (Chat) EncodeRequest(dst []byte, r *chat.Request, _ *chat.Traits, loss *chat.Loss) ([]byte, error) {
	if err := bounds(r); err != nil {
		return dst, err
	}
	if err := upstream.ReportLoss(r, loss, "temperature", "top_p", "top_k", "n"); err != nil {
		return dst, err
	}
	if r.MaxTokens.Set {
		loss.Add(r.MaxTokensField, upstream.UnsupportedField)
	}
	upstream.MovedPrompts(r, loss)
	turns, system, err := upstream.Turns(r, loss)
	if err != nil {
		return dst, err
	}
	o := upstream.Begin(dst)
	sampling(o, r)
	o.Key("prompt")
	o.Open('{')
	o.StrIf("context", system)
	o.Key("messages")
	o.Open('[')
	for _, t := range turns {
		author := "user"
		if t.Role == chat.Assistant {
			author = "model"
		}
		o.Open('{')
		o.Str("author", author)
		o.Str("content", t.Text)
		o.Close('}')
	}
	o.Close(']')
	o.Close('}')
	o.Close('}')
	return o.B, loss.Err()
}

// EncodeRequest implements chat.RequestWriter.
func (Text) EncodeRequest(dst []byte, r *chat.Request, _ *chat.Traits, loss *chat.Loss) ([]byte, error) {
	if r.Completion == nil {
		return dst, fault.New(fault.UnsupportedOperation, "", "This model only completes texts")
	}
	if err := bounds(r); err != nil {
		return dst, err
	}
	if err := upstream.ReportLoss(r, loss, "temperature", "top_p", "top_k", "n", "stop"); err != nil {
		return dst, err
	}
	o := upstream.Begin(dst)
	sampling(o, r)
	o.IntIf("maxOutputTokens", r.MaxTokens)
	o.ListIf("stopSequences", r.Stop)
	o.Key("prompt")
	o.Open('{')
	o.Str("text", upstream.Prompt(r))
	o.Close('}')
	o.Close('}')
	return o.B, loss.Err()
}

// DecodeResponse implements chat.ResponseReader.
func (Chat) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	return decode(body, "content")
}

// DecodeResponse implements chat.ResponseReader.
func (Text) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	return decode(body, "output")
}

// decode reads candidates with the text in the given field. A response with filters but
// no candidate counts as one filtered response.
func decode(body []byte, member string) (*chat.Response, error) {
	d := wire.NewDecoder(body)
	r := &chat.Response{}
	filtered, known := "", false
	for key := range d.Object {
		switch string(key) {
		case "candidates":
			known = true
			if d.Kind() != wire.KindArray {
				continue
			}
			for i := range d.Array {
				r.Choices = append(r.Choices, chat.Choice{Index: i, Parts: []chat.Part{{Kind: chat.Text, Text: textOf(d, member)}}})
			}
		case "filters":
			known = true
			if d.Kind() != wire.KindArray {
				continue
			}
			for range d.Array {
				filtered = textOf(d, "reason")
			}
		}
	}
	switch {
	case d.End() != nil:
		return nil, upstream.Invalid("The provider's response is not JSON", d.End())
	case !known:
		return nil, upstream.InBand(body)
	case len(r.Choices) == 0:
		r.Choices = []chat.Choice{{Stop: chat.StopFilter, Native: filtered}}
	}
	return r, nil
}

func textOf(d *wire.Decoder, member string) (text string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ""
	}
	for key := range d.Object {
		if string(key) == member {
			text = upstream.OptString(d)
		}
	}
	return text
}

// Embeddings is POST /models/{model}:embedText, which embeds one text.
type Embeddings struct{ upstream.Errors }

// Name implements chat.Translator.
func (Embeddings) Name() string { return "palm.embeddings" }

// EncodeRequest implements chat.Translator.
func (Embeddings) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := embedding.Read(body)
	if err != nil {
		return dst, "", err
	}
	texts, err := r.Texts(1)
	if err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss)
	o := upstream.Begin(dst)
	o.Str("text", texts[0])
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Embeddings) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read embedding.Response
	for key := range d.Object {
		if string(key) != "embedding" || d.Kind() != wire.KindObject {
			continue
		}
		for key := range d.Object {
			if string(key) == "value" {
				read.Vectors = []embedding.Vector{{Raw: upstream.Clone(d.Raw())}}
			}
		}
	}
	switch {
	case d.End() != nil:
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", d.End())
	case read.Vectors == nil:
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	out, m, err := read.Append(dst, a)
	return out, "", m, err
}
