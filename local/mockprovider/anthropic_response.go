package mockprovider

import (
	"encoding/json"
	"strconv"
	"strings"
)

// message serves POST /messages.
func message(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkMessage(x, v, false)
	if e != nil {
		return e
	}
	id, done, e := x.begin("msg_", q.seed, q.stream)
	if done {
		return e
	}
	m := &messageResponse{q: q, x: x, id: id}
	m.response = q.respond(0)
	m.usage = x.s.caches.charge(x.model, q.prompt, q.cache.marks, x.s.opts.CacheMinTokens, x.s.opts.Now())
	if c := int64(q.st.cached); c > 0 {
		m.usage = Usage{CacheRead: min(c, q.prompt), Input: q.prompt - min(c, q.prompt)}
	}
	m.usage.Output, m.usage.Reasoning = m.response.generated()
	if q.stream {
		m.stream()
		return nil
	}
	x.plain(m.id, m.body(), m.usage)
	return nil
}

// countTokens serves POST /messages/count_tokens: what message would charge for the prompt.
func countTokens(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkMessage(x, v, true)
	if e != nil {
		return e
	}
	return listed(x, fill(`{"input_tokens":$}`, q.prompt))
}

// messageResponse writes a message, complete or as events.
type messageResponse struct {
	q        *messageRequest
	x        *exchange
	id       string
	response modelOutput
	usage    Usage
	index    int // of the next block of a stream
}

func (m *messageResponse) stopReason() string {
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
		return "refusal"
	}
	return "end_turn"
}

// inputUsage writes the token classes of the prompt, without the closing bracket.
func (m *messageResponse) inputUsage(whole bool) []byte {
	u := m.usage
	b := fill(`{"input_tokens":$,"cache_creation_input_tokens":$,"cache_read_input_tokens":$`, u.Input, u.CacheWrite5m+u.CacheWrite1h, u.CacheRead)
	if whole {
		b = append(b, fill(`,"cache_creation":{"ephemeral_5m_input_tokens":$,"ephemeral_1h_input_tokens":$},"service_tier":"standard"`, u.CacheWrite5m, u.CacheWrite1h)...)
	}
	return append(b, ',')
}

// object writes a message with its content; usage is "" or its field.
func (m *messageResponse) object(content []json.RawMessage, stop, matched any, usage []byte) []byte {
	return fill(`{"id":$,"type":"message","role":"assistant","model":$,"content":$,"stop_reason":$,"stop_sequence":$$}`, m.id, m.x.model, list(content), stop, matched, usage)
}

func (m *messageResponse) body() []byte {
	a := &m.response
	var content []json.RawMessage
	if len(a.thinking) > 0 {
		content = append(content, m.thinkingBlock())
	}
	if len(a.text) > 0 {
		content = append(content, fill(`{"type":"text","text":$}`, strings.Join(a.text, "")))
	}
	for i := range a.calls {
		content = append(content, fill(`{"type":"tool_use","id":$,"name":$,"input":$}`, m.callID(i), a.calls[i].name, wholeArgs(&a.calls[i])))
	}
	usage := []byte{}
	if !m.q.st.noUsage {
		usage = fill(`,"usage":$"output_tokens":$,"output_tokens_details":{"thinking_tokens":$}}`, m.inputUsage(true), m.usage.Output+m.usage.Reasoning, m.usage.Reasoning)
	}
	return m.object(content, m.stopReason(), orNull(a.matched), usage)
}

// wholeArgs are the arguments of a call; {} if they were cut off by the limit of tokens, or
// omitted.
func wholeArgs(c *call) json.RawMessage {
	if !json.Valid([]byte(c.args)) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(c.args)
}

func (m *messageResponse) callID(i int) string {
	return "toolu_" + strings.TrimPrefix(m.id, "msg_") + "t" + strconv.Itoa(i)
}

// thinkingBlock writes thinking in the form that is shown: text and signature, the
// signature only, or redacted data.
func (m *messageResponse) thinkingBlock() []byte {
	thinking := strings.Join(m.response.thinking, "")
	switch {
	case m.q.st.redacted:
		return fill(`{"type":"redacted_thinking","data":$}`, seal(signRedacted, thinking))
	case m.q.omitted:
		return fill(`{"type":"thinking","thinking":"","signature":$}`, seal(signOmitted, thinking))
	}
	return fill(`{"type":"thinking","thinking":$,"signature":$}`, thinking, sign(thinking))
}

// stream sends the events: message_start, the blocks one after the other,
// message_delta, message_stop.
func (m *messageResponse) stream() {
	s := m.x.startStream(m.id, m.usage)
	usage := []byte{}
	if !m.q.st.noUsage {
		usage = fill(`,"usage":$"output_tokens":1}`, m.inputUsage(true))
	}
	s.event("message_start", fill(`{"type":"message_start","message":$}`, m.object(nil, nil, nil, usage)))
	m.blocks(s)
	s.finish()
	if !m.q.st.noUsage {
		usage = fill(`,"usage":$"output_tokens":$}`, m.inputUsage(false), m.usage.Output+m.usage.Reasoning)
	}
	s.event("message_delta", fill(`{"type":"message_delta","delta":{"stop_reason":$,"stop_sequence":$}$}`, m.stopReason(), orNull(m.response.matched), usage))
	s.last("message_stop", []byte(`{"type":"message_stop"}`))
}

// blocks sends all content blocks.
func (m *messageResponse) blocks(s *stream) {
	a := &m.response
	if len(a.thinking) > 0 {
		m.thoughts(s)
	}
	if len(a.text) > 0 {
		m.start(s, `{"type":"text","text":""}`)
		for _, p := range a.text {
			s.spend(1, 0)
			m.delta(s, `{"type":"text_delta","text":`, p)
		}
		m.stop(s)
	}
	for i := range a.calls {
		c := &a.calls[i]
		s.spend(1, 0)
		m.start(s, `{"type":"tool_use","id":`+quoted(m.callID(i))+`,"name":`+quoted(c.name)+`,"input":{}}`)
		if c.args == "{}" || len(c.pieces) == 0 { // one delta without text
			s.spend(int64(len(c.pieces)), 0)
			m.delta(s, `{"type":"input_json_delta","partial_json":`, "")
			m.stop(s)
			continue
		}
		for _, p := range c.pieces {
			s.spend(1, 0)
			m.delta(s, `{"type":"input_json_delta","partial_json":`, p)
		}
		m.stop(s)
	}
}

func (m *messageResponse) thoughts(s *stream) {
	a := &m.response
	whole := strings.Join(a.thinking, "")
	switch signature := sign(whole); {
	case m.q.st.redacted:
		s.spend(0, int64(len(a.thinking)))
		m.start(s, `{"type":"redacted_thinking","data":`+quoted(seal(signRedacted, whole))+`}`)
	default:
		m.start(s, `{"type":"thinking","thinking":"","signature":""}`)
		for _, p := range a.thinking {
			if s.spend(0, 1); !m.q.omitted {
				m.delta(s, `{"type":"thinking_delta","thinking":`, p)
			}
		}
		if m.q.omitted {
			signature = seal(signOmitted, whole)
		}
		m.delta(s, `{"type":"signature_delta","signature":`, signature)
	}
	m.stop(s)
}

func (m *messageResponse) start(s *stream, block string) {
	s.event("content_block_start", fill(`{"type":"content_block_start","index":$,"content_block":$}`, m.index, json.RawMessage(block)))
}

func (m *messageResponse) delta(s *stream, head, content string) {
	s.event("content_block_delta", fill(`{"type":"content_block_delta","index":$,"delta":$$}}`, m.index, json.RawMessage(head), content))
}

func (m *messageResponse) stop(s *stream) {
	s.event("content_block_stop", fill(`{"type":"content_block_stop","index":$}`, m.index))
	m.index++
}
