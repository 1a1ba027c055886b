package mockprovider

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// converse serves Converse and ConverseStream.
func converse(x *exchange, stream bool) *apiError {
	v, err := parseJSON(string(x.body))
	if err != nil || v.kind != object {
		return &apiError{status: 400, typ: "SerializationException", message: "The body is not a JSON object"}
	}
	q, e := checkConverse(x, v)
	if e != nil {
		return e
	}
	if e := x.settle(q.seed); e != nil {
		return bedrockInvalid(e.message)
	}
	m := &converseAnswer{q: q, x: x, id: x.newID("aws-", q.seed)}
	x.row, x.hasRow = x.s.bill.begin(x.path, x.model, m.id, stream), true
	if done, e := x.misbehave(); done {
		return e
	}
	m.answer = q.answer(0)
	m.usage = x.s.caches.charge(x.model, q.prompt, q.cache.marks, x.s.opts.CacheMinTokens, x.s.opts.Now())
	if c := int64(q.st.cached); c > 0 {
		m.usage = Usage{CacheRead: min(c, q.prompt), Input: q.prompt - min(c, q.prompt)}
	}
	m.usage.Output, m.usage.Reasoning = m.answer.generated()
	if stream {
		m.stream()
		return nil
	}
	x.w.Header()["X-Amzn-Requestid"] = []string{m.id}
	x.plain(m.id, m.body(), m.usage)
	return nil
}

// bedrockCount serves CountTokens, which has two kinds of input.
func bedrockCount(x *exchange) *apiError {
	v, err := parseJSON(string(x.body))
	if err != nil {
		return bedrockInvalid("The body is not JSON")
	}
	if strings.HasPrefix(x.model, "us.") || strings.HasPrefix(x.model, "global.") {
		return bedrockInvalid("The provided model doesn't support counting tokens.")
	}
	name, inner, e := union(v.get("input"), "input", "invokeModel", "converse")
	if e != nil {
		return e
	}
	var prompt int64
	if name == "converse" {
		if e := members(inner, "input.converse", "messages", "system", "toolConfig", "additionalModelRequestFields"); e != nil {
			return e
		}
		q, e := checkConverse(x, inner)
		if e != nil {
			return e
		}
		prompt = q.prompt
	} else {
		raw, err := base64.StdEncoding.DecodeString(inner.get("body").s)
		body, err2 := parseJSON(string(raw))
		if err != nil || err2 != nil || body.get("anthropic_version").s != "bedrock-2023-05-31" || body.get("model").kind != absent || body.get("stream").kind != absent {
			return bedrockInvalid("input.invokeModel.body is not a body of this model")
		}
		if n, ok := body.get("max_tokens").integer(); !ok || n < 1 {
			return bedrockInvalid("max_tokens: Field required")
		}
		q := &messageRequest{job: job{model: x.model, st: &x.st}, counting: true}
		for _, check := range []func() *apiError{
			func() *apiError { return q.toolList(body) },
			func() *apiError { return q.system(body.get("system")) },
			func() *apiError { return q.messages(body.get("messages").arr) },
		} {
			if e := check(); e != nil {
				return bedrockInvalid(e.message)
			}
		}
		prompt = q.prompt
	}
	return bedrockPlain(x, append(strconv.AppendInt([]byte(`{"inputTokens":`), prompt, 10), '}'), Usage{})
}

// converseAnswer writes a response, complete or as events.
type converseAnswer struct {
	q      *converseRequest
	x      *exchange
	id     string
	answer answer
	usage  Usage
	index  int
}

func (m *converseAnswer) stopReason() string {
	if m.q.st.finish != "" {
		return m.q.st.finish
	}
	switch m.answer.stop {
	case stopLength:
		return "max_tokens"
	case stopSequence:
		return "stop_sequence"
	case stopTools:
		return "tool_use"
	case stopRefused:
		return "content_filtered"
	}
	return "end_turn"
}

func (m *converseAnswer) usageObject(b []byte) []byte {
	u := m.usage
	write := u.CacheWrite5m + u.CacheWrite1h
	b = strconv.AppendInt(append(b, `{"inputTokens":`...), u.Input, 10)
	b = strconv.AppendInt(append(b, `,"outputTokens":`...), u.Output+u.Reasoning, 10)
	b = strconv.AppendInt(append(b, `,"totalTokens":`...), u.prompt()+u.Output+u.Reasoning, 10)
	b = strconv.AppendInt(append(b, `,"cacheReadInputTokens":`...), u.CacheRead, 10)
	b = strconv.AppendInt(append(b, `,"cacheWriteInputTokens":`...), write, 10)
	if write > 0 {
		b = strconv.AppendInt(append(b, `,"cacheDetails":[{"ttl":"1h","inputTokens":`...), u.CacheWrite1h, 10)
		b = append(strconv.AppendInt(append(b, `},{"ttl":"5m","inputTokens":`...), u.CacheWrite5m, 10), `}]`...)
	}
	return append(b, '}')
}

func (m *converseAnswer) callID(i int) string {
	return "tooluse_" + strings.TrimPrefix(m.id, "aws-") + "t" + strconv.Itoa(i)
}

func (m *converseAnswer) body() []byte {
	a := &m.answer
	b := []byte(`{"output":{"message":{"role":"assistant","content":[`)
	comma := func() {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
	}
	if len(a.thinking) > 0 {
		comma()
		said := strings.Join(a.thinking, "")
		switch {
		case m.q.st.redacted:
			b = append(appendString(append(b, `{"reasoningContent":{"redactedContent":`...), seal(signRedacted, said)), `}}`...)
		case m.q.omitted:
			b = append(appendString(append(b, `{"reasoningContent":{"reasoningText":{"text":"","signature":`...), seal(signOmitted, said)), `}}}`...)
		default:
			b = appendString(append(b, `{"reasoningContent":{"reasoningText":{"text":`...), said)
			b = append(appendString(append(b, `,"signature":`...), sign(said)), `}}}`...)
		}
	}
	if len(a.text) > 0 {
		comma()
		b = append(appendString(append(b, `{"text":`...), strings.Join(a.text, "")), '}')
	}
	for i := range a.calls {
		comma()
		args := a.calls[i].args
		if _, err := parseJSON(args); err != nil {
			args = "{}"
		}
		b = appendString(append(b, `{"toolUse":{"toolUseId":`...), m.callID(i))
		b = appendString(append(b, `,"name":`...), a.calls[i].name)
		b = append(append(append(b, `,"input":`...), args...), `}}`...)
	}
	b = appendString(append(b, `]}},"stopReason":`...), m.stopReason())
	if !m.q.st.noUsage {
		b = m.usageObject(append(b, `,"usage":`...))
	}
	return append(b, `,"metrics":{"latencyMs":1}}`...)
}

// stream sends messageStart, the blocks, messageStop and metadata.
func (m *converseAnswer) stream() {
	s := startBinary(m.x, m.id, m.usage)
	if !s.event("messageStart", []byte(`{"role":"assistant"}`)) || !m.blocks(s) {
		return
	}
	m.x.row.close(200, m.usage, m.x.gone(), "")
	if m.q.st.noDone || !s.event("messageStop", append(appendString([]byte(`{"stopReason":`), m.stopReason()), '}')) {
		return
	}
	b := []byte(`{"metrics":{"latencyMs":1}`)
	if !m.q.st.noUsage {
		b = m.usageObject(append(b, `,"usage":`...))
	}
	s.event("metadata", append(b, '}'))
}

func (m *converseAnswer) delta(s *binaryStream, head, content, tail string) bool {
	b := strconv.AppendInt([]byte(`{"contentBlockIndex":`), int64(m.index), 10)
	b = append(appendString(append(append(b, `,"delta":`...), head...), content), tail...)
	return s.event("contentBlockDelta", append(b, '}'))
}

func (m *converseAnswer) stop(s *binaryStream) bool {
	b := append(strconv.AppendInt([]byte(`{"contentBlockIndex":`), int64(m.index), 10), '}')
	m.index++
	return s.event("contentBlockStop", b)
}

// blocks sends all content blocks and reports whether the stream continues. Only tool calls
// have an event for their start.
func (m *converseAnswer) blocks(s *binaryStream) bool {
	a := &m.answer
	if len(a.thinking) > 0 && !m.thoughts(s) {
		return false
	}
	if len(a.text) > 0 {
		for _, p := range a.text {
			s.output++
			if !m.delta(s, `{"text":`, p, `}`) {
				return false
			}
		}
		if !m.stop(s) {
			return false
		}
	}
	for i := range a.calls {
		c := &a.calls[i]
		s.output++
		b := strconv.AppendInt([]byte(`{"contentBlockIndex":`), int64(m.index), 10)
		b = appendString(append(b, `,"start":{"toolUse":{"toolUseId":`...), m.callID(i))
		if !s.event("contentBlockStart", append(appendString(append(b, `,"name":`...), c.name), `}}}`...)) {
			return false
		}
		if c.args != "{}" {
			for _, p := range c.pieces {
				s.output++
				if !m.delta(s, `{"toolUse":{"input":`, p, `}}`) {
					return false
				}
			}
		} else {
			s.output += int64(len(c.pieces))
		}
		if !m.stop(s) {
			return false
		}
	}
	return true
}

func (m *converseAnswer) thoughts(s *binaryStream) bool {
	a := &m.answer
	said := strings.Join(a.thinking, "")
	if m.q.st.redacted {
		s.hidden += int64(len(a.thinking))
		return m.delta(s, `{"reasoningContent":{"redactedContent":`, seal(signRedacted, said), `}}`) && m.stop(s)
	}
	signature := sign(said)
	if m.q.omitted {
		signature = seal(signOmitted, said)
		s.hidden += int64(len(a.thinking))
	} else {
		for _, p := range a.thinking {
			s.hidden++
			if !m.delta(s, `{"reasoningContent":{"text":`, p, `}}`) {
				return false
			}
		}
	}
	return m.delta(s, `{"reasoningContent":{"signature":`, signature, `}}`) && m.stop(s)
}
