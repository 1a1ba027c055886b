// Package workersai is the run path of Cloudflare Workers AI for text
// completions. Its chats and embeddings are of the OpenAI shape.
package workersai

import (
	"bytes"
	"slices"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Run is POST /ai/run/{model} with a prompt.
type Run struct{ upstream.Errors }

var _ chat.Provider = Run{}

// Name implements chat.Dialect.
func (Run) Name() string { return "workers-ai" }

var passed = []string{"raw", "lora", "repetition_penalty"}

// EncodeRequest implements chat.RequestWriter.
func (Run) EncodeRequest(dst []byte, r *chat.Request, _ *chat.Traits, loss *chat.Loss) ([]byte, error) {
	if r.Completion == nil {
		return dst, fault.New(fault.UnsupportedOperation, "", "This path only completes texts")
	}
	carried := append([]string{"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed"}, passed...)
	if err := upstream.ReportLoss(r, loss, carried...); err != nil {
		return dst, err
	}
	o := upstream.Begin(dst)
	o.Str("prompt", upstream.Prompt(r))
	if r.Stream {
		o.Bool("stream", true)
	}
	o.IntIf("max_tokens", r.MaxTokens)
	o.FloatIf("temperature", r.Temperature)
	o.FloatIf("top_p", r.TopP)
	o.IntIf("top_k", r.TopK)
	o.FloatIf("frequency_penalty", r.FrequencyPenalty)
	o.FloatIf("presence_penalty", r.PresencePenalty)
	o.IntIf("seed", r.Seed)
	for _, x := range r.Extra {
		if slices.Contains(passed, x.Name) {
			o.Raw(x.Name, x.Raw)
		}
	}
	o.Close('}')
	return o.B, loss.Err()
}

// readUsage reads {prompt_tokens, completion_tokens}.
func readUsage(d *wire.Decoder, u *pricing.Usage) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		var n chat.Opt[int64]
		switch string(key) {
		case "prompt_tokens":
			if upstream.Count(d, &n); n.Set {
				u.Set(pricing.Input, n.Value)
			}
		case "completion_tokens":
			if upstream.Count(d, &n); n.Set {
				u.Set(pricing.Output, n.Value)
			}
		}
	}
}

// DecodeResponse implements chat.ResponseReader: {result: {response, usage}, success,
// errors}.
func (Run) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	d := wire.NewDecoder(body)
	r := &chat.Response{Choices: make([]chat.Choice, 1)}
	success, found := true, false
	for key := range d.Object {
		switch string(key) {
		case "success":
			if d.Kind() == wire.KindBool {
				success = d.Bool()
			}
		case "result":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				switch string(key) {
				case "response":
					found = true
					r.Choices[0].Parts = []chat.Part{{Kind: chat.Text, Text: text(d)}}
				case "usage":
					readUsage(d, &r.Usage)
				}
			}
		}
	}
	switch {
	case d.End() != nil:
		return nil, upstream.Invalid("The provider's response is not JSON", d.End())
	case !success || !found:
		return nil, upstream.InBand(body)
	}
	return r, nil
}

// text reads a response, which is an object if JSON was requested.
func text(d *wire.Decoder) string {
	if d.Kind() == wire.KindString {
		return d.Str()
	}
	return string(d.Raw())
}

// NewStreamDecoder implements chat.ResponseReader.
func (Run) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(decoder) }

// decoder reads {response, p, usage} until [DONE].
type decoder struct{ upstream.Stream }

// Event implements chat.StreamDecoder.
func (s *decoder) Event(_ string, data []byte, emit func(*chat.Delta) error) error {
	data = bytes.TrimSpace(data)
	switch {
	case s.M.Err != nil:
		return s.M.Err
	case len(data) == 0 || s.M.Complete:
		return nil
	case string(data) == "[DONE]":
		if s.M.Usage.IsReported() {
			u := s.M.Usage
			if err := s.Emit(chat.Delta{Kind: chat.DeltaUsage, Usage: &u}, emit); err != nil {
				return err
			}
		}
		return s.Stop(chat.StopUnknown, "", emit)
	}
	d := &s.D
	d.Reset(data)
	var piece []byte
	known := false
	for key := range d.Object {
		switch string(key) {
		case "response":
			known = true
			piece = upstream.RawString(d)
		case "usage":
			known = true
			readUsage(d, &s.M.Usage)
		case "p", "tool_calls":
			known = true
		}
	}
	switch {
	case d.End() != nil:
		return s.Unreadable(d.End())
	case !known:
		return s.Fail(upstream.InBand(data))
	}
	return s.Text(piece, emit)
}
