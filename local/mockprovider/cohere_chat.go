package mockprovider

import (
	"fmt"
	"strconv"
	"strings"
)

// cohereRequest is a valid chat request.
type cohereRequest struct {
	job
	stream bool
}

var cohereChatRules = parseRules(`model messages!!:a stream tools[]{... type!=function function!{... name!!:s parameters!:o}} strict_tools documents citation_options
	response_format{... type!=text|json_object} safety_mode max_tokens:1..1073741824 stop_sequences<5 temperature:0..1 seed frequency_penalty:0..1 presence_penalty:0..1 k:0..500 p:0.01..0.99
	logprobs tool_choice=REQUIRED|NONE thinking{... type!=enabled|disabled} priority`)

// cohereChat serves POST /v2/chat.
func cohereChat(x *exchange) *apiError {
	v, e := cohereBody(x, cohereChatRules)
	if e != nil {
		return e
	}
	q, e := checkCohere(x, v)
	if e != nil {
		return e
	}
	id, done, e := x.begin("", q.seed, q.stream)
	if done {
		return e
	}
	c := &cohereResponse{q: q, x: x, id: id, response: q.respond(0)}
	out, think := c.response.generated()
	// The billed tokens do not contain those of the tools' description.
	c.tokens = Usage{Input: q.prompt + 20, Output: out + think}
	c.billed = Usage{Input: q.prompt, Output: out + think}
	if q.stream {
		c.streamed()
		return nil
	}
	x.plain(id, c.body(), c.billed)
	return nil
}

// checkCohere reads a request.
func checkCohere(x *exchange, v value) (*cohereRequest, *apiError) {
	q := &cohereRequest{job: job{model: x.model, st: &x.st, parallel: true}}
	q.stream = v.get("stream").yes
	q.maxTokens, _ = v.get("max_tokens").integer()
	for _, s := range v.get("stop_sequences").arr {
		q.stops = append(q.stops, s.s)
	}
	messages := v.get("messages")
	q.seed = seedOf(messages.s)
	q.prompt = tokensOf(messages.s) + tokensOf(v.get("documents").s)
	for _, check := range []func() *apiError{
		func() *apiError { return q.messages(messages) },
		func() *apiError { return q.toolList(v) },
		func() *apiError { return q.format(v) },
		func() *apiError { return q.think(v.get("thinking")) },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return q, nil
}

// messages checks the turns: each tool call has a result, each result a call.
func (q *cohereRequest) messages(list value) *apiError {
	open := map[string]bool{}
	for i, m := range list.arr {
		role, content := m.get("role").s, m.get("content")
		if len(open) > 0 && role != "tool" {
			return cohereBad("all elements in tool_calls of message %d must be answered by tool messages.", i-1)
		}
		q.afterTool = role == "tool"
		switch role {
		case "system", "user":
			if e := q.content(content, i, role); e != nil {
				return e
			}
		case "assistant":
			calls := m.get("tool_calls").arr
			if len(calls) == 0 && !content.given() {
				return cohereBad("message at index %d must have content or tool_calls.", i)
			}
			for _, c := range calls {
				f := c.get("function")
				if _, err := parseJSON(f.get("arguments").s); err != nil || c.get("id").s == "" || f.get("name").s == "" || c.get("type").s != "function" {
					return cohereBad("invalid tool call in message at index %d.", i)
				}
				open[c.get("id").s] = true
			}
		case "tool":
			id := m.get("tool_call_id").s
			if !open[id] {
				return cohereBad("tool_call_id %q of message %d does not match a tool call.", id, i)
			}
			delete(open, id)
			if !content.given() {
				return cohereBad("tool message at index %d must have content.", i)
			}
			q.toolText = plainText(content)
		default:
			return cohereBad("invalid role %q in message at index %d.", role, i)
		}
		if role == "user" {
			q.lastUser = plainText(content)
		}
	}
	if len(open) > 0 {
		return cohereBad("tool calls without results at the end of messages.")
	}
	return steerBy(q.st, q.lastUser)
}

func (q *cohereRequest) content(v value, i int, role string) *apiError {
	if v.kind == text {
		return nil
	}
	if v.kind != array || len(v.arr) == 0 {
		return cohereBad("message at index %d must have content.", i)
	}
	for _, p := range v.arr {
		switch kind := p.get("type").s; {
		case kind == "text" && p.get("text").kind == text:
		case kind == "image_url" && role == "user":
			url := p.get("image_url").get("url").s
			if !strings.HasPrefix(url, "data:image/") && !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
				return cohereBad("invalid image url in message at index %d.", i)
			}
			if !strings.Contains(q.model, "vision") && !strings.Contains(q.model, "reasoning") {
				return cohereBad("model %s does not support image input.", q.model)
			}
		default:
			return cohereBad("invalid content of type %q in message at index %d.", kind, i)
		}
	}
	return nil
}

func (q *cohereRequest) toolList(v value) *apiError {
	for i, t := range v.get("tools").arr {
		f := t.get("function")
		if strings.Trim(f.get("name").s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return cohereBad("tools[%d] has an invalid name.", i)
		}
		q.tools = append(q.tools, tool{f.get("name").s, f.get("parameters")})
	}
	switch choice := v.get("tool_choice"); {
	case !choice.given():
	case choice.s == "REQUIRED" && len(q.tools) > 0:
		q.choice = chooseAny
	case choice.s == "NONE":
		q.choice = chooseNone
	default:
		return cohereBad("tool_choice must be REQUIRED or NONE, and needs tools.")
	}
	return nil
}

func (q *cohereRequest) format(v value) *apiError {
	f := v.get("response_format")
	switch kind := f.get("type").s; {
	case !f.given() || kind == "text":
		return nil
	case len(q.tools) > 0:
		return cohereBad("response_format is not supported with tools.")
	}
	q.anyJSON = true
	if schema := f.get("json_schema"); schema.given() {
		q.schema = schema
	}
	return nil
}

func (q *cohereRequest) think(v value) *apiError {
	if !v.given() {
		return nil
	}
	if !strings.Contains(q.model, "reasoning") {
		return cohereBad("thinking is not supported by the model %s.", q.model)
	}
	q.thinking, q.effort = v.get("type").s == "enabled", 5
	return nil
}

// cohereResponse writes a response, complete or as events.
type cohereResponse struct {
	q              *cohereRequest
	x              *exchange
	id             string
	response       modelOutput
	tokens, billed Usage
}

func (c *cohereResponse) finish() string {
	if f := c.q.st.finish; f != "" {
		return f
	}
	return [...]string{"COMPLETE", "MAX_TOKENS", "STOP_SEQUENCE", "TOOL_CALL", "COMPLETE"}[c.response.stop]
}

func (c *cohereResponse) usage() string {
	if c.q.st.noUsage {
		return ""
	}
	return fmt.Sprintf(`,"usage":{"billed_units":{"input_tokens":%d,"output_tokens":%d},"tokens":{"input_tokens":%d,"output_tokens":%d}}`, c.billed.Input, c.billed.Output, c.tokens.Input, c.tokens.Output)
}

func (c *cohereResponse) call(i int, args string) string {
	return `{"id":` + quoted(c.callID(i)) + `,"type":"function","function":{"name":` + quoted(c.response.calls[i].name) + `,"arguments":` + quoted(args) + `}}`
}

func (c *cohereResponse) callID(i int) string {
	return c.response.calls[i].name + "_" + c.id + "_" + strconv.Itoa(i)
}

const coherePlan = "I will use a tool."

// body returns the complete response.
func (c *cohereResponse) body() []byte {
	a := &c.response
	var content, rest []string
	if len(a.thinking) > 0 {
		content = append(content, `{"type":"thinking","thinking":`+quoted(strings.Join(a.thinking, ""))+`}`)
	}
	if len(a.calls) > 0 {
		var calls []string
		for i := range a.calls {
			calls = append(calls, c.call(i, a.calls[i].args))
		}
		rest = append(rest, `"tool_plan":`+quoted(coherePlan), `"tool_calls":[`+strings.Join(calls, ",")+`]`)
	} else {
		content = append(content, `{"type":"text","text":`+quoted(strings.Join(a.text, ""))+`}`)
	}
	if len(content) > 0 {
		rest = append(rest, `"content":[`+strings.Join(content, ",")+`]`)
	}
	return []byte(`{"id":` + quoted(c.id) + `,"message":{"role":"assistant",` + strings.Join(rest, ",") + `},"finish_reason":` + quoted(c.finish()) + c.usage() + `}`)
}

// streamed sends the response as events.
func (c *cohereResponse) streamed() {
	s := c.x.startStream(c.id, c.billed)
	send := func(kind, rest string) bool { return s.event(kind, []byte(`{"type":"`+kind+`"`+rest+`}`)) }
	send("message-start", `,"id":`+quoted(c.id)+`,"delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}`)
	a, n := &c.response, 0
	block := func(kind string, pieces []string) {
		at := `,"index":` + strconv.Itoa(n)
		n++
		send("content-start", at+`,"delta":{"message":{"content":{"type":"`+kind+`","`+kind+`":""}}}`)
		for _, p := range pieces {
			s.spend(1, 0)
			send("content-delta", at+`,"delta":{"message":{"content":{"`+kind+`":`+quoted(p)+`}}}`)
		}
		send("content-end", at)
	}
	if len(a.thinking) > 0 {
		block("thinking", a.thinking)
	}
	if len(a.calls) == 0 {
		block("text", a.text)
	} else {
		send("tool-plan-delta", `,"delta":{"message":{"tool_plan":`+quoted(coherePlan)+`}}`)
	}
	for i := range a.calls {
		at := `,"index":` + strconv.Itoa(i)
		s.spend(1, 0)
		send("tool-call-start", at+`,"delta":{"message":{"tool_calls":`+c.call(i, "")+`}}`)
		for _, p := range a.calls[i].pieces {
			s.spend(1, 0)
			send("tool-call-delta", at+`,"delta":{"message":{"tool_calls":{"function":{"arguments":`+quoted(p)+`}}}}`)
		}
		send("tool-call-end", at)
	}
	if s.stopped {
		return
	}
	s.finish()
	s.last("message-end", []byte(`{"type":"message-end","delta":{"finish_reason":`+quoted(c.finish())+c.usage()+`}}`))
}

// cohereErrorOf writes the end of a response that failed.
func cohereErrorOf(message string) []byte {
	return fill(`{"type":"message-end","delta":{"error":$,"finish_reason":"ERROR"}}`, message)
}
