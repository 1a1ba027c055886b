// Package ai21 is the wire of AI21's first models: text completions of
// POST /{model}/complete and embeddings of POST /embed. Its chats are of the
// OpenAI shape.
package ai21

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Complete is POST /{model}/complete, which does not stream.
type Complete struct{ upstream.Errors }

var _ chat.Provider = Complete{}

// Name implements chat.Dialect.
func (Complete) Name() string { return "ai21.complete" }

// maxResults is how many responses one request gives.
const maxResults = 16

// passed are fields that only this provider knows.
var passed = []string{"minTokens", "countPenalty", "topKReturn", "logitBias", "epoch"}

// EncodeRequest implements chat.RequestWriter.
func (Complete) EncodeRequest(dst []byte, r *chat.Request, _ *chat.Traits, loss *chat.Loss) ([]byte, error) {
	switch {
	case r.Completion == nil:
		return dst, fault.New(fault.UnsupportedOperation, "", "This model only completes texts")
	case r.N.Set && r.N.Value > maxResults:
		return dst, fault.Invalid("n", "n must be at most %d for this provider", maxResults)
	case r.Temperature.Set && r.Temperature.Value > 1:
		return dst, fault.Invalid("temperature", "temperature must be between 0 and 1 for this provider")
	case r.PresencePenalty.Value < 0:
		return dst, fault.Invalid("presence_penalty", "presence_penalty must not be below 0 for this provider")
	case r.FrequencyPenalty.Value < 0:
		return dst, fault.Invalid("frequency_penalty", "frequency_penalty must not be below 0 for this provider")
	}
	carried := append([]string{"temperature", "top_p", "presence_penalty", "frequency_penalty", "stop", "n"}, passed...)
	if err := upstream.ReportLoss(r, loss, carried...); err != nil {
		return dst, err
	}
	o := upstream.Begin(dst)
	o.Str("prompt", upstream.Prompt(r))
	o.IntIf("maxTokens", r.MaxTokens)
	o.IntIf("numResults", r.N)
	o.FloatIf("temperature", r.Temperature)
	o.FloatIf("topP", r.TopP)
	o.ListIf("stopSequences", r.Stop)
	Penalty(o, "presencePenalty", r.PresencePenalty)
	Penalty(o, "frequencyPenalty", r.FrequencyPenalty)
	for _, x := range r.Extra {
		for _, name := range passed {
			if x.Name == name {
				o.Raw(name, x.Raw)
			}
		}
	}
	o.Close('}')
	return o.B, loss.Err()
}

// Penalty writes a penalty, if there is one, as an object with its scale.
func Penalty(o *upstream.Object, name string, v chat.Opt[float64]) {
	if v.Set {
		o.Key(name)
		o.Open('{')
		o.FloatIf("scale", v)
		o.Close('}')
	}
}

// DecodeResponse implements chat.ResponseReader. Tokens are counted by the lists of
// tokens that the provider gives.
func (Complete) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	d := wire.NewDecoder(body)
	r := &chat.Response{}
	var in, out chat.Opt[int64]
	for key := range d.Object {
		switch string(key) {
		case "id":
			r.ID = scalar(d)
		case "prompt":
			member(d, "tokens", func() { count(d, &in) })
		case "completions":
			if d.Kind() == wire.KindArray {
				for i := range d.Array {
					r.Choices = append(r.Choices, completion(d, i, &out))
				}
			}
		}
	}
	switch {
	case d.End() != nil:
		return nil, upstream.Invalid("The provider's response is not JSON", d.End())
	case len(r.Choices) == 0:
		return nil, upstream.InBand(body)
	}
	if in.Set {
		r.Usage.Set(pricing.Input, in.Value)
	}
	if out.Set {
		r.Usage.Set(pricing.Output, out.Value)
	}
	return r, nil
}

// scalar reads an id, which may be a number.
func scalar(d *wire.Decoder) string {
	if d.Kind() == wire.KindNumber {
		return string(d.Num())
	}
	return upstream.OptString(d)
}

func member(d *wire.Decoder, name string, read func()) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		if string(key) == name {
			read()
		}
	}
}

// count adds the length of a list to n.
func count(d *wire.Decoder, n *chat.Opt[int64]) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return
	}
	n.Set = true
	for range d.Array {
		n.Value++
	}
}

func completion(d *wire.Decoder, i int, out *chat.Opt[int64]) chat.Choice {
	c := chat.Choice{Index: i}
	if d.Kind() != wire.KindObject {
		d.Skip()
		return c
	}
	for key := range d.Object {
		switch string(key) {
		case "data":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				switch string(key) {
				case "text":
					c.Parts = []chat.Part{{Kind: chat.Text, Text: upstream.OptString(d)}}
				case "tokens":
					count(d, out)
				}
			}
		case "finishReason":
			member(d, "reason", func() { c.Native = upstream.OptString(d) })
		}
	}
	switch c.Native {
	case "endoftext":
		c.Stop = chat.StopEnd
	case "length":
		c.Stop = chat.StopLength
	case "stop":
		c.Stop = chat.StopSequence
	}
	return c
}

// NewStreamDecoder implements chat.ResponseReader.
func (w Complete) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder {
	return upstream.NewBufferedDecoder(w, t)
}

// Embeddings is POST /embed.
type Embeddings struct{ upstream.Errors }

var _ chat.Translator = Embeddings{}

// Name implements chat.Translator.
func (Embeddings) Name() string { return "ai21.embeddings" }

// maxTexts is how many texts one request may embed.
const maxTexts = 200

// EncodeRequest implements chat.Translator.
func (Embeddings) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := embedding.Read(body)
	if err != nil {
		return dst, "", err
	}
	texts, err := r.Texts(maxTexts)
	if err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss, "type")
	o := upstream.Begin(dst)
	r.Pass(o, "type")
	o.List("texts", texts)
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator. The provider reports no usage.
func (Embeddings) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read embedding.Response
	for key := range d.Object {
		if string(key) != "results" || d.Kind() != wire.KindArray {
			continue
		}
		for i := range d.Array {
			v := embedding.Vector{Index: i}
			member(d, "embedding", func() { v.Raw = upstream.Clone(d.Raw()) })
			read.Vectors = append(read.Vectors, v)
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
