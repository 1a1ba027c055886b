// Package reka is the wire of Reka's POST /chat: a history of texts by a human
// and the model.
package reka

import (
	"slices"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Chat is POST /chat. It always requests a complete response.
type Chat struct{ upstream.Errors }

var _ chat.Provider = Chat{}

// Name implements chat.Dialect.
func (Chat) Name() string { return "reka" }

// passed are fields that only this provider knows.
var passed = []string{"length_penalty", "retrieval_dataset", "use_search_engine"}

// EncodeRequest implements chat.RequestWriter. System prompts go before the first words of
// the human, because the history has no other place for them.
func (Chat) EncodeRequest(dst []byte, r *chat.Request, _ *chat.Traits, loss *chat.Loss) ([]byte, error) {
	if r.Temperature.Set && r.Temperature.Value > 1 {
		return dst, fault.Invalid("temperature", "temperature must be between 0 and 1 for this provider")
	}
	carried := append([]string{"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop"}, passed...)
	if err := upstream.ReportLoss(r, loss, carried...); err != nil {
		return dst, err
	}
	turns, system, err := upstream.Turns(r, loss)
	if err != nil {
		return dst, err
	}
	o := upstream.Begin(dst)
	o.Str("model_name", r.Model)
	o.IntIf("request_output_len", r.MaxTokens)
	o.FloatIf("temperature", r.Temperature)
	o.FloatIf("runtime_top_p", r.TopP)
	o.IntIf("runtime_top_k", r.TopK)
	o.FloatIf("frequency_penalty", r.FrequencyPenalty)
	o.FloatIf("presence_penalty", r.PresencePenalty)
	o.IntIf("random_seed", r.Seed)
	o.ListIf("stop_words", r.Stop)
	for _, x := range r.Extra {
		if slices.Contains(passed, x.Name) {
			o.Raw(x.Name, x.Raw)
		}
	}
	o.Key("conversation_history")
	o.Open('[')
	if system != "" {
		reportSystem(r, loss)
	}
	for _, t := range turns {
		kind := "human"
		if t.Role == chat.Assistant {
			kind = "model"
		} else if system != "" {
			t.Text, system = system+"\n\n"+t.Text, ""
		}
		o.Open('{')
		o.Str("type", kind)
		o.Str("text", t.Text)
		o.Close('}')
	}
	o.Close(']')
	o.Close('}')
	return o.B, loss.Err()
}

func reportSystem(r *chat.Request, loss *chat.Loss) {
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Role == chat.System || m.Role == chat.Developer {
			loss.Add(upstream.Path(m, nil)+".role", "written in front of the user's first words")
		}
	}
}

// DecodeResponse implements chat.ResponseReader: {text, finish_reason, metadata:
// {input_tokens, generated_tokens}}.
func (Chat) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	d := wire.NewDecoder(body)
	r := &chat.Response{Choices: make([]chat.Choice, 1)}
	c := &r.Choices[0]
	found := false
	for key := range d.Object {
		switch string(key) {
		case "text":
			found = d.Kind() == wire.KindString
			c.Parts = []chat.Part{{Kind: chat.Text, Text: upstream.OptString(d)}}
		case "finish_reason":
			c.Native = upstream.OptString(d)
		case "metadata":
			if d.Kind() == wire.KindObject {
				usage(d, &r.Usage)
			}
		}
	}
	switch {
	case d.End() != nil:
		return nil, upstream.Invalid("The provider's response is not JSON", d.End())
	case !found:
		return nil, upstream.InBand(body)
	}
	switch c.Native {
	case "stop":
		c.Stop = chat.StopEnd
	case "length":
		c.Stop = chat.StopLength
	case "context":
		c.Stop = chat.StopContext
	}
	return r, nil
}

func usage(d *wire.Decoder, u *pricing.Usage) {
	for key := range d.Object {
		var n chat.Opt[int64]
		switch string(key) {
		case "input_tokens":
			if upstream.Count(d, &n); n.Set {
				u.Set(pricing.Input, n.Value)
			}
		case "generated_tokens":
			if upstream.Count(d, &n); n.Set {
				u.Set(pricing.Output, n.Value)
			}
		}
	}
}

// NewStreamDecoder implements chat.ResponseReader.
func (w Chat) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder {
	return upstream.NewBufferedDecoder(w, t)
}
