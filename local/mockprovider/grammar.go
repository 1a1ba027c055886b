package mockprovider

import (
	"fmt"
	"slices"
	"strings"
)

// StreamCall is a tool call in a stream.
type StreamCall struct {
	ID, Name, Arguments string
}

// StreamResult is what the events of a stream add up to.
type StreamResult struct {
	ID, Model string
	Text      string // text of the first choice
	Thinking  string
	Signature string
	Calls     []StreamCall // calls of the first choice
	Finish    string       // finish reason of the first choice
	Choices   int
	// Prompt and Completion are the usage; -1 when the stream reported none.
	Prompt, Completion int64
	Events             int
}

type sseEvent struct{ name, data string }

// readEvents splits a stream into events: it accepts any line ending, leaves out comments
// and joins data lines; the last event may lack the blank line after it.
func readEvents(body string) []sseEvent {
	body = strings.TrimPrefix(body, "\ufeff")
	body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	var out []sseEvent
	var e sseEvent
	var data []string
	emit := func() {
		if data != nil {
			e.data = strings.Join(data, "\n")
			out = append(out, e)
		}
		e, data = sseEvent{}, nil
	}
	for line := range strings.SplitSeq(body, "\n") {
		name, val, _ := strings.Cut(line, ":")
		val = strings.TrimPrefix(val, " ")
		switch {
		case line == "":
			emit()
		case name == "event":
			e.name = val
		case name == "data":
			data = append(data, val)
		}
	}
	emit()
	return out
}

// ReadOpenAIStream adds up a stream of chat completion or text completion chunks and checks its
// grammar: id, created, model and object are the same throughout; each chat choice begins with
// its role and ends with one finish reason; calls count up from 0, each has one id and one
// name, and the arguments of completed calls are JSON; there is at most one usage chunk, after
// all choices; [DONE] is at the end. An error event ends the stream with an error that contains
// its message.
func ReadOpenAIStream(body []byte) (*StreamResult, error) {
	r := openAIReader{StreamResult: StreamResult{Prompt: -1, Completion: -1}, choices: map[int64]*choiceState{}}
	events := readEvents(string(body))
	for i, e := range events {
		if e.data == "[DONE]" {
			if i != len(events)-1 {
				return &r.StreamResult, fmt.Errorf("event %d: something follows [DONE]", i)
			}
			return &r.StreamResult, r.end()
		}
		v, err := parseJSON(e.data)
		if err != nil {
			return &r.StreamResult, fmt.Errorf("event %d: %w", i, err)
		}
		if err := r.chunk(v); err != nil {
			return &r.StreamResult, fmt.Errorf("event %d: %w", i, err)
		}
		r.Events++
	}
	return &r.StreamResult, fmt.Errorf("the stream ends without [DONE] after %d events", len(events))
}

type openAIReader struct {
	StreamResult
	object, created string
	choices         map[int64]*choiceState
	usage           bool
}

type choiceState struct {
	finish string
	calls  []StreamCall
}

func (r *openAIReader) chunk(v value) error {
	if e := v.get("error"); e.kind == object {
		return fmt.Errorf("error event %s: %s", e.get("type").s, e.get("message").s)
	}
	if r.usage {
		return fmt.Errorf("a chunk follows the usage chunk")
	}
	object, created := v.get("object").s, v.get("created").s
	if r.object == "" {
		r.ID, r.Model, r.object, r.created = v.get("id").s, v.get("model").s, object, created
		if r.ID == "" || r.Model == "" || created == "" || object != "chat.completion.chunk" && object != "text_completion" {
			return fmt.Errorf("bad envelope: id %q model %q created %q object %q", r.ID, r.Model, created, object)
		}
	}
	if v.get("id").s != r.ID || v.get("model").s != r.Model || object != r.object || created != r.created {
		return fmt.Errorf("the envelope changed within the stream")
	}
	list := v.get("choices")
	if list.kind != array {
		return fmt.Errorf("choices is %s", list.kind)
	}
	if u := v.get("usage"); u.given() {
		r.usage = true
		r.Prompt, _ = u.get("prompt_tokens").integer()
		r.Completion, _ = u.get("completion_tokens").integer()
		if total, ok := u.get("total_tokens").integer(); !ok || total != r.Prompt+r.Completion || len(list.arr) > 0 {
			return fmt.Errorf("bad usage chunk")
		}
		return nil
	}
	for _, c := range list.arr {
		if err := r.choice(c); err != nil {
			return err
		}
	}
	return nil
}

func (r *openAIReader) choice(c value) error {
	index, ok := c.get("index").integer()
	if !ok {
		return fmt.Errorf("a choice has no index")
	}
	st, delta := r.choices[index], c.get("delta")
	if st == nil {
		st = &choiceState{}
		r.choices[index] = st
		if r.object == "chat.completion.chunk" && delta.get("role").s != "assistant" {
			return fmt.Errorf("choice %d does not open with its role", index)
		}
	} else if delta.get("role").given() {
		return fmt.Errorf("choice %d has its role twice", index)
	}
	if st.finish != "" {
		return fmt.Errorf("choice %d goes on after its finish reason", index)
	}
	st.finish = c.get("finish_reason").s
	if index == 0 {
		r.Text += delta.get("content").s + delta.get("refusal").s + c.get("text").s
		r.Thinking += delta.get("reasoning_content").s
	}
	if f := delta.get("function_call"); f.kind == object {
		if len(st.calls) == 0 {
			st.calls = []StreamCall{{ID: "-"}}
		}
		st.calls[0].Name += f.get("name").s
		st.calls[0].Arguments += f.get("arguments").s
	}
	for _, t := range delta.get("tool_calls").arr {
		if err := st.call(t); err != nil {
			return fmt.Errorf("choice %d: %w", index, err)
		}
	}
	return nil
}

func (st *choiceState) call(t value) error {
	k, ok := t.get("index").integer()
	if !ok || k < 0 || k > int64(len(st.calls)) {
		return fmt.Errorf("tool call index %s after %d calls", t.get("index").s, len(st.calls))
	}
	id, f := t.get("id").s, t.get("function")
	name := f.get("name").s
	if k == int64(len(st.calls)) {
		if id == "" || name == "" || t.get("type").s != "function" {
			return fmt.Errorf("tool call %d opens without id, type or name", k)
		}
		if slices.ContainsFunc(st.calls, func(c StreamCall) bool { return c.ID == id }) {
			return fmt.Errorf("tool call id %s stands twice", id)
		}
		st.calls = append(st.calls, StreamCall{ID: id, Name: name})
	} else if id != "" || name != "" {
		return fmt.Errorf("tool call %d has its id or name twice", k)
	}
	st.calls[k].Arguments += f.get("arguments").s
	return nil
}

func (r *openAIReader) end() error {
	r.Choices = len(r.choices)
	if r.Choices == 0 {
		return fmt.Errorf("no choice")
	}
	for i, st := range r.choices {
		if st.finish == "" {
			return fmt.Errorf("choice %d has no finish reason", i)
		}
		for k, c := range st.calls {
			if _, err := parseJSON(c.Arguments); err != nil && st.finish != "length" {
				return fmt.Errorf("choice %d: arguments of call %d: %w", i, k, err)
			}
		}
	}
	if first := r.choices[0]; first != nil {
		r.Finish, r.Calls = first.finish, first.calls
	}
	return nil
}

// ReadAnthropicStream adds up a stream of message events and checks its grammar:
// message_start comes first; blocks do not overlap and count from 0; deltas have the kind
// of their block; thinking is signed; inputs are JSON objects; there is one message_delta
// with a stop reason and usage; message_stop comes last; the event name equals the type. An
// error event ends the stream with an error that holds its message.
func ReadAnthropicStream(body []byte) (*StreamResult, error) {
	r := anthropicReader{StreamResult: StreamResult{Prompt: -1, Completion: -1}}
	for i, e := range readEvents(string(body)) {
		v, err := parseJSON(e.data)
		if err == nil && v.get("type").s != e.name {
			err = fmt.Errorf("event %q has type %q", e.name, v.get("type").s)
		}
		if err == nil {
			err = r.event(v)
		}
		if err != nil {
			return &r.StreamResult, fmt.Errorf("event %d: %w", i, err)
		}
		r.Events++
	}
	if r.state != "stopped" {
		return &r.StreamResult, fmt.Errorf("the stream ends without message_stop after %d events", r.Events)
	}
	for k, c := range r.Calls {
		if v, err := parseJSON(c.Arguments); r.Finish != "max_tokens" && (err != nil || v.kind != object) {
			return &r.StreamResult, fmt.Errorf("input of call %d is not an object: %q", k, c.Arguments)
		}
	}
	return &r.StreamResult, nil
}

type anthropicReader struct {
	StreamResult
	state  string // "", open (between blocks), block, delta, stopped
	blocks int64
	block  string // type of the open block
	input  string
	deltas int
}

func (r *anthropicReader) event(v value) error {
	typ := v.get("type").s
	expect := func(state string) error {
		if r.state != state {
			return fmt.Errorf("%s in state %q", typ, r.state)
		}
		return nil
	}
	index, _ := v.get("index").integer()
	switch typ {
	case "ping":
		return nil
	case "error":
		return fmt.Errorf("error event %s: %s", v.get("error").get("type").s, v.get("error").get("message").s)
	case "message_start":
		m := v.get("message")
		r.ID, r.Model = m.get("id").s, m.get("model").s
		if u := m.get("usage"); u.kind == object {
			r.usage(u)
		}
		if r.ID == "" || m.get("role").s != "assistant" || m.get("content").kind != array || len(m.get("content").arr) > 0 || m.get("stop_reason").kind != null {
			return fmt.Errorf("bad message_start")
		}
		err := expect("")
		r.state = "open"
		return err
	case "content_block_start":
		err := expect("open")
		if err == nil && index != r.blocks {
			err = fmt.Errorf("block %d where %d is next", index, r.blocks)
		}
		r.state, r.deltas, r.input = "block", 0, ""
		return firstError(err, r.startBlock(v.get("content_block")))
	case "content_block_delta":
		err := expect("block")
		if err == nil && index != r.blocks {
			err = fmt.Errorf("delta for block %d within %d", index, r.blocks)
		}
		r.deltas++
		return firstError(err, r.delta(v.get("delta")))
	case "content_block_stop":
		err := expect("block")
		if err == nil && index != r.blocks {
			err = fmt.Errorf("stop of block %d within %d", index, r.blocks)
		}
		r.blocks++
		r.state = "open"
		return firstError(err, r.stopBlock())
	case "message_delta":
		err := expect("open")
		r.state, r.Finish = "delta", v.get("delta").get("stop_reason").s
		if err == nil && r.Finish == "" {
			err = fmt.Errorf("message_delta without stop_reason")
		}
		if u := v.get("usage"); u.kind == object {
			r.usage(u)
			r.Completion, _ = u.get("output_tokens").integer()
		}
		return err
	case "message_stop":
		err := expect("delta")
		r.state = "stopped"
		return err
	}
	return fmt.Errorf("unknown event %q", typ)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *anthropicReader) usage(u value) {
	if _, ok := u.get("input_tokens").integer(); !ok {
		return
	}
	r.Prompt = 0
	for _, name := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
		n, _ := u.get(name).integer()
		r.Prompt += n
	}
}

func (r *anthropicReader) startBlock(b value) error {
	r.block = b.get("type").s
	switch r.block {
	case "text":
		if b.get("text").kind != text {
			return fmt.Errorf("text block without text")
		}
	case "thinking":
		r.Signature = ""
	case "redacted_thinking":
		r.Signature = b.get("data").s
	case "tool_use":
		id := b.get("id").s
		if id == "" || b.get("name").s == "" || b.get("input").kind != object || len(b.get("input").obj) > 0 {
			return fmt.Errorf("bad tool_use block")
		}
		if slices.ContainsFunc(r.Calls, func(c StreamCall) bool { return c.ID == id }) {
			return fmt.Errorf("tool_use id %s stands twice", id)
		}
		r.Calls = append(r.Calls, StreamCall{ID: id, Name: b.get("name").s})
	default:
		return fmt.Errorf("unknown block %q", r.block)
	}
	return nil
}

func (r *anthropicReader) delta(d value) error {
	typ := d.get("type").s
	if !slices.Contains(map[string][]string{"text": {"text_delta", "citations_delta"}, "thinking": {"thinking_delta", "signature_delta"}, "tool_use": {"input_json_delta"}}[r.block], typ) {
		return fmt.Errorf("%s within a %s block", typ, r.block)
	}
	if r.Signature != "" && typ == "thinking_delta" {
		return fmt.Errorf("thinking after its signature")
	}
	r.Text += d.get("text").s
	r.Thinking += d.get("thinking").s
	r.input += d.get("partial_json").s
	if typ == "signature_delta" {
		r.Signature = d.get("signature").s
	}
	return nil
}

func (r *anthropicReader) stopBlock() error {
	switch r.block {
	case "thinking":
		if r.Signature == "" {
			return fmt.Errorf("thinking without signature")
		}
	case "tool_use":
		c := &r.Calls[len(r.Calls)-1]
		if c.Arguments = r.input; r.input == "" {
			c.Arguments = "{}"
		}
	}
	return nil
}
