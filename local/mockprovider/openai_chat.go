package mockprovider

import (
	"encoding/json"
	"strconv"
	"strings"
)

// chatCompletion serves POST /chat/completions.
func chatCompletion(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkChat(x, v)
	if e != nil {
		return e
	}
	id, done, e := x.begin("chatcmpl-", q.seed, q.stream)
	if done {
		return e
	}
	c := &chatResponse{q: q, x: x, id: id, created: x.s.opts.Now().Unix()}
	var u Usage
	for i := range q.n {
		a := q.respond(i)
		out, think := a.generated()
		u.Output, u.Reasoning = u.Output+out, u.Reasoning+think
		c.responses = append(c.responses, a)
	}
	u.Input = q.prompt
	if q.st.cached > 0 {
		u.CacheRead = min(int64(q.st.cached), u.Input)
		u.Input -= u.CacheRead
	}
	c.usage = u
	c.store(v)
	if q.stream {
		c.stream()
		return nil
	}
	x.plain(c.id, c.body(), u)
	return nil
}

// chatResponse writes a chat completion, complete or in chunks.
type chatResponse struct {
	q         *chatRequest
	x         *exchange
	id        string
	created   int64
	responses []modelOutput
	usage     Usage
}

func (c *chatResponse) head(what string) []byte {
	return fill(`{"id":$,"object":$,"created":$,"model":$`, c.id, what, c.created, c.x.model)
}

const chatTail = `,"service_tier":"default","system_fingerprint":"fp_mock"`

func (c *chatResponse) body() []byte {
	var choices []json.RawMessage
	for i := range c.responses {
		a := &c.responses[i]
		logprobs := json.RawMessage("null")
		if c.q.logprobs && len(a.calls) == 0 {
			logprobs = c.logprobs(a.text)
		}
		choices = append(choices, fill(`{"index":$,"message":$,"logprobs":$,"finish_reason":$}`, i, c.message(i), logprobs, c.finish(a)))
	}
	b := append(c.head("chat.completion"), fill(`,"choices":$`, list(choices))...)
	if !c.q.st.noUsage {
		b = appendOpenAIUsage(append(b, `,"usage":`...), c.usage, true)
	}
	return append(append(b, chatTail...), '}')
}

func (c *chatResponse) message(choice int) []byte {
	a := &c.responses[choice]
	var content, refusal any
	switch {
	case len(a.calls) > 0:
	case a.stop == stopRefused:
		refusal = strings.Join(a.text, "")
	default:
		content = strings.Join(a.text, "")
	}
	b := fill(`{"role":"assistant","content":$,"refusal":$`, content, refusal)
	if len(a.thinking) > 0 {
		b = append(b, fill(`,"reasoning_content":$`, strings.Join(a.thinking, ""))...)
	}
	if len(a.calls) > 0 && c.q.legacy {
		return append(b, fill(`,"function_call":{"name":$,"arguments":$}}`, a.calls[0].name, a.calls[0].args)...)
	}
	var calls []json.RawMessage
	for i := range a.calls {
		calls = append(calls, fill(`{"id":$,"type":"function","function":{"name":$,"arguments":$}}`, c.callID(choice, i), a.calls[i].name, a.calls[i].args))
	}
	if calls != nil {
		b = append(b, fill(`,"tool_calls":$`, list(calls))...)
	}
	return append(b, `,"annotations":[]}`...)
}

func btoi(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (c *chatResponse) callID(choice, i int) string {
	return "call_" + strings.TrimPrefix(c.id, "chatcmpl-") + "c" + strconv.Itoa(choice) + "t" + strconv.Itoa(i)
}

func (c *chatResponse) finish(a *modelOutput) string {
	if c.q.st.finish != "" {
		return c.q.st.finish
	}
	switch a.stop {
	case stopLength:
		return "length"
	case stopTools:
		if c.q.legacy {
			return "function_call"
		}
		return "tool_calls"
	}
	return "stop"
}

// logprobs writes one object for each piece; the numbers depend only on the piece.
func (c *chatResponse) logprobs(pieces []string) json.RawMessage {
	var all []json.RawMessage
	for _, p := range pieces {
		var top []json.RawMessage
		for k := range c.q.topLogprobs {
			token := p
			if k > 0 {
				token = vocabulary[(int(seedOf(p))+k)&31]
			}
			top = append(top, append(logprobOf(token, k+1), '}'))
		}
		all = append(all, append(logprobOf(p, 1), fill(`,"top_logprobs":$}`, list(top))...))
	}
	return fill(`{"content":$,"refusal":null}`, list(all))
}

// logprobOf writes an object, without its closing bracket.
func logprobOf(token string, rank int) []byte {
	codes := make([]int, len(token))
	for i := range codes {
		codes[i] = int(token[i])
	}
	return fill(`{"token":$,"logprob":-$.$,"bytes":$`, token, rank-1, int64(seedOf(token)%90)+10, codes)
}

// appendOpenAIUsage writes usage as OpenAI counts it: prompt contains cached, completion
// contains reasoning.
func appendOpenAIUsage(b []byte, u Usage, details bool) []byte {
	out := u.Output + u.Reasoning
	b = append(b, fill(`{"prompt_tokens":$,"completion_tokens":$,"total_tokens":$`, u.prompt(), out, u.prompt()+out)...)
	if details {
		b = append(b, fill(`,"prompt_tokens_details":{"cached_tokens":$,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":$,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}`, u.CacheRead, u.Reasoning)...)
	}
	return append(b, '}')
}

// chunk sends one chunk of a choice.
func (c *chatResponse) chunk(s *stream, choice int, d delta) {
	b := append(append(c.head("chat.completion.chunk"), chatTail...), fill(`,"choices":[{"index":$,"delta":$,"logprobs":$,"finish_reason":$}]`, choice, json.RawMessage(d.json), json.RawMessage(d.logprobs), orNull(d.finish))...)
	if c.q.includeUsage && !c.q.st.noUsage {
		b = append(b, `,"usage":null`...)
	}
	s.event("", append(b, '}'))
}

// stream sends the chunks: the choices alternate, each with its role, its pieces and its
// finish reason; then usage, then [DONE].
func (c *chatResponse) stream() {
	s := c.x.startStream(c.id, c.usage)
	todo := make([][]delta, len(c.responses))
	for i := range todo {
		todo[i] = c.deltas(i)
	}
	for k, more := 0, true; more; k++ {
		more = false
		for i, all := range todo {
			if k < len(all) {
				more = true
				s.spend(all[k].output, all[k].reasoning)
				c.chunk(s, i, all[k])
			}
		}
	}
	s.finish()
	if c.q.includeUsage && !c.q.st.noUsage {
		b := append(append(c.head("chat.completion.chunk"), chatTail...), `,"choices":[],"usage":`...)
		s.event("", append(appendOpenAIUsage(b, c.usage, true), '}'))
	}
	s.last("", []byte("[DONE]"))
}

// delta is a chunk that is still to be sent.
type delta struct {
	json, logprobs, finish string
	output, reasoning      int64
}

// deltas returns the chunks of one choice.
func (c *chatResponse) deltas(choice int) []delta {
	a := &c.responses[choice]
	opening := `{"role":"assistant","content":"","refusal":null}`
	if len(a.calls) > 0 || a.stop == stopRefused {
		opening = `{"role":"assistant","content":null,"refusal":null}`
	}
	out := []delta{{json: opening, logprobs: "null"}}
	field := `{"content":`
	if a.stop == stopRefused {
		field = `{"refusal":`
	}
	if n := int64(len(a.thinking)) + a.hidden; n > 0 {
		d := delta{json: `{}`, logprobs: "null", reasoning: n}
		if len(a.thinking) > 0 {
			d.json = `{"reasoning_content":` + quoted(strings.Join(a.thinking, "")) + `}`
			out = append(out, d)
		} else {
			out[0].reasoning = n
		}
	}
	for _, p := range a.text {
		d := delta{json: field + quoted(p) + `}`, logprobs: "null", output: 1}
		if c.q.logprobs {
			d.logprobs = string(c.logprobs([]string{p}))
		}
		out = append(out, d)
	}
	out = append(out, c.callDeltas(choice)...)
	return append(out, delta{json: `{}`, logprobs: "null", finish: c.finish(a)})
}

func quoted(s string) string { return string(appendString(nil, s)) }

// callDeltas returns the chunks of the tool calls: one call after the other, or with their
// arguments interleaved.
func (c *chatResponse) callDeltas(choice int) []delta {
	a := &c.responses[choice]
	each := make([][]delta, len(a.calls))
	for i := range a.calls {
		k := &a.calls[i]
		at := `{"tool_calls":[{"index":` + strconv.Itoa(i)
		first := delta{logprobs: "null", output: 1, json: at + `,"id":` + quoted(c.callID(choice, i)) + `,"type":"function","function":{"name":` + quoted(k.name) + `,"arguments":""}}]}`}
		if c.q.legacy {
			first.json = `{"function_call":{"name":` + quoted(k.name) + `,"arguments":""}}`
		}
		each[i] = append(each[i], first)
		for _, p := range k.pieces {
			d := delta{logprobs: "null", output: 1, json: at + `,"function":{"arguments":` + quoted(p) + `}}]}`}
			if c.q.legacy {
				d.json = `{"function_call":{"arguments":` + quoted(p) + `}}`
			}
			each[i] = append(each[i], d)
		}
	}
	var out []delta
	if !c.q.st.interleave {
		for _, e := range each {
			out = append(out, e...)
		}
		return out
	}
	for k, more := 0, true; more; k++ {
		more = false
		for _, e := range each {
			if k < len(e) {
				out, more = append(out, e[k]), true
			}
		}
	}
	return out
}
