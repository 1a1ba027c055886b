// Package triton is the generate extension of NVIDIA's Triton server: text in,
// text out, plain by /generate and streamed by /generate_stream.
package triton

import (
	"bytes"
	"slices"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Generate is POST /generate and /generate_stream.
type Generate struct{ upstream.Errors }

var _ chat.Provider = Generate{}

// Name implements chat.Dialect.
func (Generate) Name() string { return "triton" }

// passed are inputs that deployed models often have.
var passed = []string{"bad_words", "repetition_penalty", "min_length", "exclude_input_in_output", "return_log_probs", "parameters", "end_id", "pad_id"}

// EncodeRequest implements chat.RequestWriter.
func (Generate) EncodeRequest(dst []byte, r *chat.Request, _ *chat.Traits, loss *chat.Loss) ([]byte, error) {
	if r.Completion == nil {
		return dst, fault.New(fault.UnsupportedOperation, "", "This server only completes texts")
	}
	carried := append([]string{"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop"}, passed...)
	if err := upstream.ReportLoss(r, loss, carried...); err != nil {
		return dst, err
	}
	o := upstream.Begin(dst)
	o.Str("text_input", upstream.Prompt(r))
	o.IntIf("max_tokens", r.MaxTokens)
	o.FloatIf("temperature", r.Temperature)
	o.FloatIf("top_p", r.TopP)
	o.IntIf("top_k", r.TopK)
	o.FloatIf("frequency_penalty", r.FrequencyPenalty)
	o.FloatIf("presence_penalty", r.PresencePenalty)
	o.IntIf("random_seed", r.Seed)
	o.ListIf("stop_words", r.Stop)
	if r.Stream {
		o.Bool("stream", true)
	}
	for _, x := range r.Extra {
		if slices.Contains(passed, x.Name) {
			o.Raw(x.Name, x.Raw)
		}
	}
	o.Close('}')
	return o.B, loss.Err()
}

// response is a response or a piece of one; an error comes alone.
type response struct {
	model string
	text  []byte // JSON string
	err   bool
}

func read(d *wire.Decoder, a *response) error {
	for key := range d.Object {
		switch string(key) {
		case "model_name":
			a.model = upstream.OptString(d)
		case "text_output":
			a.text = upstream.RawString(d)
		case "error":
			a.err = true
		}
	}
	return d.End()
}

// DecodeResponse implements chat.ResponseReader. The server reports neither usage nor
// why it ended.
func (Generate) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	var a response
	switch err := read(wire.NewDecoder(body), &a); {
	case err != nil:
		return nil, upstream.Invalid("The provider's response is not JSON", err)
	case a.err || a.text == nil:
		return nil, upstream.InBand(body)
	}
	text := string(wire.AppendUnquoted(nil, a.text))
	return &chat.Response{Model: a.model, Choices: []chat.Choice{{Parts: []chat.Part{{Kind: chat.Text, Text: text}}}}}, nil
}

// NewStreamDecoder implements chat.ResponseReader.
func (Generate) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(decoder) }

// decoder reads pieces of text until the stream ends, which is not announced.
type decoder struct{ upstream.Stream }

// Parser implements chat.Framed.
func (*decoder) Parser() chat.EventParser { return new(upstream.Events) }

// Event implements chat.StreamDecoder.
func (s *decoder) Event(name string, data []byte, emit func(*chat.Delta) error) error {
	data = bytes.TrimSpace(data)
	switch {
	case s.M.Err != nil:
		return s.M.Err
	case name == upstream.EndOfStream:
		if !s.M.Started {
			return nil
		}
		return s.Stop(chat.StopUnknown, "", emit)
	case len(data) == 0:
		return nil
	}
	var a response
	s.D.Reset(data)
	if err := read(&s.D, &a); err != nil {
		return s.Unreadable(err)
	}
	if a.err {
		return s.Fail(upstream.InBand(data))
	}
	if s.M.Model == "" {
		s.M.Model = a.model
	}
	return s.Text(a.text, emit)
}
