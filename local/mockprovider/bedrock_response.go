package mockprovider

import (
	"encoding/base64"
	"encoding/json"
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
	id, done, e := x.begin("aws-", q.seed, stream)
	if done {
		return e
	}
	m := &converseResponse{q: q, x: x, id: id}
	m.response = q.respond(0)
	m.usage = x.s.caches.charge(x.model, q.prompt, q.cache.marks, x.s.opts.CacheMinTokens, x.s.opts.Now())
	if c := int64(q.st.cached); c > 0 {
		m.usage = Usage{CacheRead: min(c, q.prompt), Input: q.prompt - min(c, q.prompt)}
	}
	m.usage.Output, m.usage.Reasoning = m.response.generated()
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
	var prompt int64
	if inner := v.at("input.converse"); inner.given() {
		q, e := checkConverse(x, inner)
		if e != nil {
			return e
		}
		prompt = q.prompt
	} else {
		raw, err := base64.StdEncoding.DecodeString(v.at("input.invokeModel.body").s)
		body, bad := parseJSON(string(raw))
		if err != nil || bad != nil || body.get("anthropic_version").s != "bedrock-2023-05-31" || body.get("model").kind != absent || body.get("stream").kind != absent {
			return bedrockInvalid("input.invokeModel.body is not a body of this model")
		}
		q, e := checkInvoked(x, body)
		if e != nil {
			return e
		}
		prompt = q.prompt
	}
	return bedrockPlain(x, fill(`{"inputTokens":$}`, prompt), Usage{})
}

// converseResponse writes a response, complete or as events.
type converseResponse struct {
	q        *converseRequest
	x        *exchange
	id       string
	response modelOutput
	usage    Usage
	index    int
}

func (m *converseResponse) stopReason() string {
	if m.q.st.finish != "" {
		return m.q.st.finish
	}
	switch m.response.stop {
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

func (m *converseResponse) usageObject() json.RawMessage {
	u := m.usage
	write := u.CacheWrite5m + u.CacheWrite1h
	b := fill(`{"inputTokens":$,"outputTokens":$,"totalTokens":$,"cacheReadInputTokens":$,"cacheWriteInputTokens":$`, u.Input, u.Output+u.Reasoning, u.prompt()+u.Output+u.Reasoning, u.CacheRead, write)
	if write > 0 {
		b = append(b, fill(`,"cacheDetails":[{"ttl":"1h","inputTokens":$},{"ttl":"5m","inputTokens":$}]`, u.CacheWrite1h, u.CacheWrite5m)...)
	}
	return append(b, '}')
}

// reported is the field of usage; empty without it.
func (m *converseResponse) reported() json.RawMessage {
	if m.q.st.noUsage {
		return json.RawMessage{}
	}
	return fill(`,"usage":$`, m.usageObject())
}

func (m *converseResponse) callID(i int) string {
	return "tooluse_" + strings.TrimPrefix(m.id, "aws-") + "t" + strconv.Itoa(i)
}

func (m *converseResponse) body() []byte {
	a := &m.response
	var content []json.RawMessage
	if len(a.thinking) > 0 {
		thinking := strings.Join(a.thinking, "")
		switch {
		case m.q.st.redacted:
			content = append(content, fill(`{"reasoningContent":{"redactedContent":$}}`, seal(signRedacted, thinking)))
		case m.q.omitted:
			content = append(content, fill(`{"reasoningContent":{"reasoningText":{"text":"","signature":$}}}`, seal(signOmitted, thinking)))
		default:
			content = append(content, fill(`{"reasoningContent":{"reasoningText":{"text":$,"signature":$}}}`, thinking, sign(thinking)))
		}
	}
	if len(a.text) > 0 {
		content = append(content, fill(`{"text":$}`, strings.Join(a.text, "")))
	}
	for i := range a.calls {
		content = append(content, fill(`{"toolUse":{"toolUseId":$,"name":$,"input":$}}`, m.callID(i), a.calls[i].name, wholeArgs(&a.calls[i])))
	}
	return fill(`{"output":{"message":{"role":"assistant","content":$}},"stopReason":$$,"metrics":{"latencyMs":1}}`, list(content), m.stopReason(), m.reported())
}

// stream sends messageStart, the blocks, messageStop and metadata.
func (m *converseResponse) stream() {
	s := m.x.startBinary(m.id, m.usage)
	s.event("messageStart", []byte(`{"role":"assistant"}`))
	m.blocks(s)
	if s.finish(); !m.q.st.noDone {
		s.event("messageStop", fill(`{"stopReason":$}`, m.stopReason()))
		s.event("metadata", fill(`{"metrics":{"latencyMs":1}$}`, m.reported()))
	}
}

func (m *converseResponse) delta(s *stream, head, content, tail string) {
	s.event("contentBlockDelta", fill(`{"contentBlockIndex":$,"delta":$$$}`, m.index, json.RawMessage(head), content, json.RawMessage(tail)))
}

func (m *converseResponse) stop(s *stream) {
	s.event("contentBlockStop", fill(`{"contentBlockIndex":$}`, m.index))
	m.index++
}

// blocks sends all content blocks. Only tool calls have an event for their start.
func (m *converseResponse) blocks(s *stream) {
	a := &m.response
	if len(a.thinking) > 0 {
		m.thoughts(s)
	}
	if len(a.text) > 0 {
		for _, p := range a.text {
			s.spend(1, 0)
			m.delta(s, `{"text":`, p, `}`)
		}
		m.stop(s)
	}
	for i := range a.calls {
		c := &a.calls[i]
		s.spend(1, 0)
		s.event("contentBlockStart", fill(`{"contentBlockIndex":$,"start":{"toolUse":{"toolUseId":$,"name":$}}}`, m.index, m.callID(i), c.name))
		for _, p := range c.pieces {
			if s.spend(1, 0); c.args != "{}" {
				m.delta(s, `{"toolUse":{"input":`, p, `}}`)
			}
		}
		m.stop(s)
	}
}

func (m *converseResponse) thoughts(s *stream) {
	a := &m.response
	thinking := strings.Join(a.thinking, "")
	kind, content := `"signature":`, sign(thinking)
	switch {
	case m.q.st.redacted:
		kind, content = `"redactedContent":`, seal(signRedacted, thinking)
	case m.q.omitted:
		content = seal(signOmitted, thinking)
	}
	for _, p := range a.thinking {
		if s.spend(0, 1); !m.q.st.redacted && !m.q.omitted {
			m.delta(s, `{"reasoningContent":{"text":`, p, `}}`)
		}
	}
	m.delta(s, `{"reasoningContent":{`+kind, content, `}}`)
	m.stop(s)
}
