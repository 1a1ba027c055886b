package mockprovider

import (
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
	if e == nil {
		e = checkBreakpoints(x, q.model)
	}
	if e != nil {
		return e
	}
	if e := x.settle(q.seed); e != nil {
		return e
	}
	c := &chatAnswer{q: q, x: x, id: x.newID("chatcmpl-", q.seed), created: x.s.opts.Now().Unix()}
	x.row, x.hasRow = x.s.bill.begin(x.path, x.model, c.id, q.stream), true
	if done, e := x.misbehave(); done {
		return e
	}
	var u Usage
	for i := range q.n {
		a := q.answer(i)
		out, think := a.generated()
		u.Output, u.Reasoning = u.Output+out, u.Reasoning+think
		c.answers = append(c.answers, a)
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

// chatAnswer writes a chat completion, complete or in chunks.
type chatAnswer struct {
	q       *chatRequest
	x       *exchange
	id      string
	created int64
	answers []answer
	usage   Usage
	buf     []byte
}

func (c *chatAnswer) head(b []byte, what string) []byte {
	b = appendString(append(b, `{"id":`...), c.id)
	b = append(append(append(b, `,"object":"`...), what...), `","created":`...)
	b = strconv.AppendInt(b, c.created, 10)
	return appendString(append(b, `,"model":`...), c.x.model)
}

const chatTail = `,"service_tier":"default","system_fingerprint":"fp_mock"`

func (c *chatAnswer) body() []byte {
	b := c.head(make([]byte, 0, 2048), "chat.completion")
	b = append(b, `,"choices":[`...)
	for i := range c.answers {
		if i > 0 {
			b = append(b, ',')
		}
		a := &c.answers[i]
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = c.message(append(b, `,"message":`...), i)
		b = append(b, `,"logprobs":`...)
		if c.q.logprobs && len(a.calls) == 0 {
			b = append(c.logprobs(append(b, `{"content":[`...), a.text), `],"refusal":null}`...)
		} else {
			b = append(b, `null`...)
		}
		b = appendString(append(b, `,"finish_reason":`...), c.finish(a))
		b = append(b, '}')
	}
	b = append(b, ']')
	if !c.q.st.noUsage {
		b = appendOpenAIUsage(append(b, `,"usage":`...), c.usage, true)
	}
	return append(append(b, chatTail...), '}')
}

func (c *chatAnswer) message(b []byte, choice int) []byte {
	a := &c.answers[choice]
	b = append(b, `{"role":"assistant","content":`...)
	switch {
	case len(a.calls) > 0:
		b = append(b, `null,"refusal":null`...)
	case a.stop == stopRefused:
		b = appendString(append(b, `null,"refusal":`...), strings.Join(a.text, ""))
	default:
		b = append(appendString(b, strings.Join(a.text, "")), `,"refusal":null`...)
	}
	if c.q.st.reasoningShown && len(a.thinking)+int(a.hidden) > 0 {
		b = appendString(append(b, `,"reasoning_content":`...), c.shown(a))
	}
	if len(a.calls) > 0 && c.q.legacy {
		b = appendString(append(b, `,"function_call":{"name":`...), a.calls[0].name)
		b = appendString(append(b, `,"arguments":`...), a.calls[0].args)
		return append(b, `}}`...)
	}
	for i := range a.calls {
		b = append(b, []string{`,`, `,"tool_calls":[`}[btoi(i == 0)]...)
		b = appendString(append(b, `{"id":`...), c.callID(choice, i))
		b = appendString(append(b, `,"type":"function","function":{"name":`...), a.calls[i].name)
		b = append(appendString(append(b, `,"arguments":`...), a.calls[i].args), `}}`...)
		if i == len(a.calls)-1 {
			b = append(b, ']')
		}
	}
	return append(b, `,"annotations":[]}`...)
}

func btoi(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// shown returns the reported reasoning: real thinking, or words in place of the hidden one.
func (c *chatAnswer) shown(a *answer) string {
	if len(a.thinking) > 0 {
		return strings.Join(a.thinking, "")
	}
	return strings.Join(words(c.q.seed, int(a.hidden)), "")
}

func (c *chatAnswer) callID(choice, i int) string {
	return "call_" + strings.TrimPrefix(c.id, "chatcmpl-") + "c" + strconv.Itoa(choice) + "t" + strconv.Itoa(i)
}

func (c *chatAnswer) finish(a *answer) string {
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
func (c *chatAnswer) logprobs(b []byte, pieces []string) []byte {
	for i, p := range pieces {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendLogprob(b, p, 1), `,"top_logprobs":[`...)
		for k := range c.q.topLogprobs {
			if k > 0 {
				b = append(b, ',')
			}
			token := p
			if k > 0 {
				token = vocabulary[(int(seedOf(p))+k)&31]
			}
			b = append(appendLogprob(b, token, k+1), '}')
		}
		b = append(b, `]}`...)
	}
	return b
}

// appendLogprob writes an object, without its closing bracket.
func appendLogprob(b []byte, token string, rank int) []byte {
	b = appendString(append(b, `{"token":`...), token)
	b = append(strconv.AppendInt(append(b, `,"logprob":-`...), int64(rank-1), 10), '.')
	b = strconv.AppendInt(b, int64(seedOf(token)%90)+10, 10)
	b = append(b, `,"bytes":[`...)
	for i := range len(token) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(token[i]), 10)
	}
	return append(b, ']')
}

// appendOpenAIUsage writes usage as OpenAI counts it: prompt contains cached, completion
// contains reasoning.
func appendOpenAIUsage(b []byte, u Usage, details bool) []byte {
	out := u.Output + u.Reasoning
	b = strconv.AppendInt(append(b, `{"prompt_tokens":`...), u.prompt(), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), out, 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), u.prompt()+out, 10)
	if details {
		b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), u.CacheRead, 10)
		b = strconv.AppendInt(append(b, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`...), u.Reasoning, 10)
		b = append(b, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}`...)
	}
	return append(b, '}')
}

// chunk sends one chunk of a choice: delta is its JSON object.
func (c *chatAnswer) chunk(s *stream, choice int, delta, logprobs, finish string) bool {
	b := c.head(c.buf[:0], "chat.completion.chunk")
	b = append(append(b, chatTail...), `,"choices":[{"index":`...)
	b = strconv.AppendInt(b, int64(choice), 10)
	b = append(append(b, `,"delta":`...), delta...)
	b = append(append(b, `,"logprobs":`...), logprobs...)
	b = appendNullable(append(b, `,"finish_reason":`...), finish)
	b = append(b, `}]`...)
	if c.q.includeUsage && !c.q.st.noUsage {
		b = append(b, `,"usage":null`...)
	}
	c.buf = append(b, '}')
	return s.event("", c.buf)
}

// stream sends the chunks: the choices alternate, each with its role, its pieces and its
// finish reason; then usage, then [DONE].
func (c *chatAnswer) stream() {
	s := c.x.startStream(c.id, c.usage)
	todo := make([][]delta, len(c.answers))
	for i := range c.answers {
		todo[i] = c.deltas(i)
	}
	for more := true; more; {
		more = false
		for i := range todo {
			if len(todo[i]) == 0 {
				continue
			}
			d := todo[i][0]
			todo[i] = todo[i][1:]
			more = true
			s.spend(d.output, d.reasoning)
			if !c.chunk(s, i, d.json, d.logprobs, d.finish) {
				return
			}
		}
	}
	s.finish()
	if c.q.includeUsage && !c.q.st.noUsage {
		b := c.head(c.buf[:0], "chat.completion.chunk")
		b = append(append(b, chatTail...), `,"choices":[],"usage":`...)
		c.buf = append(appendOpenAIUsage(b, c.usage, true), '}')
		if !s.event("", c.buf) {
			return
		}
	}
	s.last("", []byte("[DONE]"))
}

// delta is a chunk that is still to be sent.
type delta struct {
	json, logprobs, finish string
	output, reasoning      int64
}

// deltas returns the chunks of one choice.
func (c *chatAnswer) deltas(choice int) []delta {
	a := &c.answers[choice]
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
		if c.q.st.reasoningShown {
			d.json = `{"reasoning_content":` + quoted(c.shown(a)) + `}`
			out = append(out, d)
		} else {
			out[0].reasoning = n
		}
	}
	for _, p := range a.text {
		d := delta{json: field + quoted(p) + `}`, logprobs: "null", output: 1}
		if c.q.logprobs {
			d.logprobs = string(c.logprobs([]byte(`{"content":[`), []string{p})) + `],"refusal":null}`
		}
		out = append(out, d)
	}
	out = append(out, c.callDeltas(choice)...)
	return append(out, delta{json: `{}`, logprobs: "null", finish: c.finish(a)})
}

func quoted(s string) string { return string(appendString(nil, s)) }

// callDeltas returns the chunks of the tool calls: one call after the other, or with their
// arguments interleaved.
func (c *chatAnswer) callDeltas(choice int) []delta {
	a := &c.answers[choice]
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
