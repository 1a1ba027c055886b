package mockprovider

import (
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
	if e := x.settle(q.seed); e != nil {
		return e
	}
	m := &messageAnswer{q: q, x: x, id: x.newID("msg_", q.seed)}
	x.row, x.hasRow = x.s.bill.begin(x.path, x.model, m.id, q.stream), true
	if done, e := x.misbehave(); done {
		return e
	}
	m.answer = q.answer(0)
	m.usage = x.s.caches.charge(x.model, q.prompt, q.cache.marks, x.s.opts.CacheMinTokens, x.s.opts.Now())
	if c := int64(q.st.cached); c > 0 {
		m.usage = Usage{CacheRead: min(c, q.prompt), Input: q.prompt - min(c, q.prompt)}
	}
	m.usage.Output, m.usage.Reasoning = m.answer.generated()
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
	return listed(x, append(strconv.AppendInt([]byte(`{"input_tokens":`), q.prompt, 10), '}'))
}

// messageAnswer writes a message, complete or as events.
type messageAnswer struct {
	q      *messageRequest
	x      *exchange
	id     string
	answer answer
	usage  Usage
	buf    []byte
	index  int // of the next block of a stream
}

func (m *messageAnswer) stopReason() string {
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
		return "refusal"
	}
	return "end_turn"
}

func (m *messageAnswer) head(b []byte) []byte {
	b = appendString(append(b, `{"id":`...), m.id)
	b = appendString(append(b, `,"type":"message","role":"assistant","model":`...), m.x.model)
	return append(b, `,"content":[`...)
}

// inputUsage writes the token classes of the prompt, without the closing bracket.
func (m *messageAnswer) inputUsage(b []byte, whole bool) []byte {
	u := m.usage
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), u.Input, 10)
	b = strconv.AppendInt(append(b, `,"cache_creation_input_tokens":`...), u.CacheWrite5m+u.CacheWrite1h, 10)
	b = strconv.AppendInt(append(b, `,"cache_read_input_tokens":`...), u.CacheRead, 10)
	if whole {
		b = strconv.AppendInt(append(b, `,"cache_creation":{"ephemeral_5m_input_tokens":`...), u.CacheWrite5m, 10)
		b = strconv.AppendInt(append(b, `,"ephemeral_1h_input_tokens":`...), u.CacheWrite1h, 10)
		b = append(b, `},"service_tier":"standard"`...)
	}
	return append(b, ',')
}

func (m *messageAnswer) body() []byte {
	a := &m.answer
	b := m.head(make([]byte, 0, 2048))
	first := true
	comma := func() {
		if !first {
			b = append(b, ',')
		}
		first = false
	}
	if len(a.thinking) > 0 {
		comma()
		b = m.thinkingBlock(b)
	}
	if len(a.text) > 0 {
		comma()
		b = append(appendString(append(b, `{"type":"text","text":`...), strings.Join(a.text, "")), '}')
	}
	for i := range a.calls {
		comma()
		args := a.calls[i].args
		if _, err := parseJSON(args); err != nil {
			args = "{}" // cut off by max_tokens, or left out
		}
		b = appendString(append(b, `{"type":"tool_use","id":`...), m.callID(i))
		b = appendString(append(b, `,"name":`...), a.calls[i].name)
		b = append(append(append(b, `,"input":`...), args...), '}')
	}
	b = appendString(append(b, `],"stop_reason":`...), m.stopReason())
	b = appendNullable(append(b, `,"stop_sequence":`...), a.matched)
	if !m.q.st.noUsage {
		b = m.inputUsage(append(b, `,"usage":`...), true)
		b = strconv.AppendInt(append(b, `"output_tokens":`...), m.usage.Output+m.usage.Reasoning, 10)
		b = strconv.AppendInt(append(b, `,"output_tokens_details":{"thinking_tokens":`...), m.usage.Reasoning, 10)
		b = append(b, `}}`...)
	}
	return append(b, '}')
}

func (m *messageAnswer) callID(i int) string {
	return "toolu_" + strings.TrimPrefix(m.id, "msg_") + "t" + strconv.Itoa(i)
}

// thinkingBlock writes thinking in the form that is shown: text and signature, the
// signature only, or redacted data.
func (m *messageAnswer) thinkingBlock(b []byte) []byte {
	thinking := strings.Join(m.answer.thinking, "")
	switch {
	case m.q.st.redacted:
		b = appendString(append(b, `{"type":"redacted_thinking","data":`...), seal(signRedacted, thinking))
	case m.q.omitted:
		b = appendString(append(b, `{"type":"thinking","thinking":"","signature":`...), seal(signOmitted, thinking))
	default:
		b = appendString(append(b, `{"type":"thinking","thinking":`...), thinking)
		b = appendString(append(b, `,"signature":`...), sign(thinking))
	}
	return append(b, '}')
}

// stream sends the events: message_start, the blocks one after the other,
// message_delta, message_stop.
func (m *messageAnswer) stream() {
	s := m.x.startStream(m.id, m.usage)
	b := m.head(append(m.buf, `{"type":"message_start","message":`...))
	b = append(b, `],"stop_reason":null,"stop_sequence":null`...)
	if !m.q.st.noUsage {
		b = append(m.inputUsage(append(b, `,"usage":`...), true), `"output_tokens":1}`...)
	}
	m.buf = append(b, `}}`...)
	if !s.event("message_start", m.buf) || !m.blocks(s) {
		return
	}
	s.finish()
	b = appendString(append(m.buf[:0], `{"type":"message_delta","delta":{"stop_reason":`...), m.stopReason())
	b = append(appendNullable(append(b, `,"stop_sequence":`...), m.answer.matched), '}')
	if !m.q.st.noUsage {
		b = append(b, `,"usage":`...)
		if m.q.st.noRestate {
			b = append(b, '{')
		} else {
			b = m.inputUsage(b, false)
		}
		b = append(strconv.AppendInt(append(b, `"output_tokens":`...), m.usage.Output+m.usage.Reasoning, 10), '}')
	}
	m.buf = append(b, '}')
	if s.event("message_delta", m.buf) {
		s.last("message_stop", []byte(`{"type":"message_stop"}`))
	}
}

// blocks sends all content blocks and reports whether the stream continues.
func (m *messageAnswer) blocks(s *stream) bool {
	a := &m.answer
	if n := int64(len(a.thinking)); n > 0 && !m.thoughts(s) {
		return false
	}
	if len(a.text) > 0 {
		if !m.start(s, `{"type":"text","text":""}`) {
			return false
		}
		for _, p := range a.text {
			s.spend(1, 0)
			if !m.delta(s, `{"type":"text_delta","text":`, p) {
				return false
			}
		}
		if !m.stop(s) {
			return false
		}
	}
	for i := range a.calls {
		c := &a.calls[i]
		s.spend(1, 0)
		if !m.start(s, `{"type":"tool_use","id":`+quoted(m.callID(i))+`,"name":`+quoted(c.name)+`,"input":{}}`) {
			return false
		}
		pieces := c.pieces
		if c.args == "{}" || len(pieces) == 0 {
			// A call without arguments gets one delta without text.
			s.spend(int64(len(pieces)), 0)
			pieces = []string{""}
		}
		for _, p := range pieces {
			if p != "" {
				s.spend(1, 0)
			}
			if !m.delta(s, `{"type":"input_json_delta","partial_json":`, p) {
				return false
			}
		}
		if !m.stop(s) {
			return false
		}
	}
	return true
}

func (m *messageAnswer) thoughts(s *stream) bool {
	a := &m.answer
	whole := strings.Join(a.thinking, "")
	if m.q.st.redacted {
		s.spend(0, int64(len(a.thinking)))
		return m.start(s, `{"type":"redacted_thinking","data":`+quoted(seal(signRedacted, whole))+`}`) && m.stop(s)
	}
	if !m.start(s, `{"type":"thinking","thinking":"","signature":""}`) {
		return false
	}
	signature := sign(whole)
	if m.q.omitted {
		signature = seal(signOmitted, whole)
		s.spend(0, int64(len(a.thinking)))
	} else {
		for _, p := range a.thinking {
			s.spend(0, 1)
			if !m.delta(s, `{"type":"thinking_delta","thinking":`, p) {
				return false
			}
		}
	}
	return m.delta(s, `{"type":"signature_delta","signature":`, signature) && m.stop(s)
}

func (m *messageAnswer) start(s *stream, block string) bool {
	b := strconv.AppendInt(append(m.buf[:0], `{"type":"content_block_start","index":`...), int64(m.index), 10)
	m.buf = append(append(append(b, `,"content_block":`...), block...), '}')
	return s.event("content_block_start", m.buf)
}

func (m *messageAnswer) delta(s *stream, head, content string) bool {
	b := strconv.AppendInt(append(m.buf[:0], `{"type":"content_block_delta","index":`...), int64(m.index), 10)
	b = appendString(append(append(b, `,"delta":`...), head...), content)
	m.buf = append(b, `}}`...)
	return s.event("content_block_delta", m.buf)
}

func (m *messageAnswer) stop(s *stream) bool {
	b := strconv.AppendInt(append(m.buf[:0], `{"type":"content_block_stop","index":`...), int64(m.index), 10)
	m.buf = append(b, '}')
	m.index++
	return s.event("content_block_stop", m.buf)
}
