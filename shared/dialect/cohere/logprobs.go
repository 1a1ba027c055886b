package cohere

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// encodeLogprobs requests log probabilities. The provider returns those of the selected
// tokens, and no alternatives.
func encodeLogprobs(e *requestEncoder) {
	r := e.r
	if r.Logprobs.Set {
		e.Bool("logprobs", r.Logprobs.Value)
	}
	if r.TopLogprobs.Value > 0 {
		e.loss.AddAnswer("top_logprobs", upstream.NotTaken)
	}
	if c := r.Completion; c != nil && c.Logprobs.Set {
		e.loss.AddAnswer("logprobs", upstream.NotTaken)
	}
}

// appendLogprobs writes items of {text, logprobs:[...]}, a list of them or one, as the
// logprobs object of the OpenAI format. An item of several tokens has one text, with the
// product of their probabilities. It returns nil if there are none.
func appendLogprobs(dst, raw []byte) []byte {
	d := wire.NewDecoder(raw)
	start := len(dst)
	dst = append(dst, `{"content":[`...)
	open := len(dst)
	item := func() {
		text, sum, n := "", 0.0, 0
		each(d, func(key string) {
			switch {
			case key == "text":
				text = upstream.OptString(d)
			case key == "logprobs" && d.Kind() == wire.KindArray:
				for range d.Array {
					sum += d.Float()
					n++
				}
			}
		})
		if n == 0 {
			return
		}
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"token":`...)
		dst = wire.AppendJSONString(dst, text)
		dst = append(dst, `,"logprob":`...)
		dst = strconv.AppendFloat(dst, sum, 'g', -1, 64)
		dst = append(dst, `,"bytes":[`...)
		for i := range len(text) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, int64(text[i]), 10)
		}
		dst = append(dst, `],"top_logprobs":[]}`...)
	}
	if d.Kind() == wire.KindArray {
		for range d.Array {
			item()
		}
	} else {
		item()
	}
	if d.Err() != nil || len(dst) == open {
		return dst[:start:start]
	}
	return append(dst, `],"refusal":null}`...)
}

// addLogprobs adds the provider's log probabilities to a choice.
func addLogprobs(c *chat.Choice, raw []byte) {
	if raw == nil {
		return
	}
	if b := appendLogprobs(nil, raw); len(b) > 0 {
		c.Logprobs = b
	}
}
