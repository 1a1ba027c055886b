package mockprovider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// beta rejects requests for assistants without the header that they need.
func beta(x *exchange) *apiError {
	if !slices.Contains(strings.Split(x.r.Header.Get("Openai-Beta"), ","), "assistants=v2") {
		return badRequest("", "invalid_beta", "You must provide the 'OpenAI-Beta' header to access the Assistants API. Please try again by setting the header 'OpenAI-Beta: assistants=v2'.")
	}
	return nil
}

func threadBehaviors() map[string]behavior {
	return map[string]behavior{
		"assistant": {changed: func(x *exchange, n *resource, v value) *apiError {
			if m := v.get("model"); m.given() {
				n.model = m.s
			}
			return nil
		}},
		"thread": {created: func(x *exchange, n *resource) { addMessages(x, n.id, n.body.get("messages")) }},
		"message": {check: func(x *exchange, n *resource) *apiError {
			if r := activeRun(x, n.parent); r != nil {
				return badRequest("", "", "Can't add messages to "+n.parent+" while a run "+r.id+" is active.")
			}
			return nil
		}, values: map[string]func(*exchange, *resource) any{
			"content": func(x *exchange, n *resource) any { return messageParts(n.body.get("content")) },
			"run":     func(x *exchange, n *resource) any { return orNull(n.name) },
		}},
		"run": {create: createRun, read: advanceRun, cancel: cancelRun, values: map[string]func(*exchange, *resource) any{"action": requiredAction}},
		"step": {values: map[string]func(*exchange, *resource) any{
			"details": stepDetails,
			"state": func(x *exchange, n *resource) any {
				if n.purpose == "tool_calls" && len(n.run.outputs) == 0 || n.state != "" {
					return "in_progress"
				}
				return "completed"
			},
		}},
	}
}

func addMessages(x *exchange, thread string, messages value) {
	for _, m := range messages.arr {
		keep(x, &resource{id: x.newID("msg_", seedOf(m.s)), kind: "message", parent: thread, body: m})
	}
}

// messageParts writes the content of a message as a list of parts.
func messageParts(c value) json.RawMessage {
	part := func(s string) json.RawMessage { return fill(`{"type":"text","text":{"value":$,"annotations":[]}}`, s) }
	if c.kind == text {
		return list([]json.RawMessage{part(c.s)})
	}
	var parts []json.RawMessage
	for _, p := range c.arr {
		if p.get("type").s == "text" {
			parts = append(parts, part(p.get("text").s))
		} else {
			parts = append(parts, p.source("null"))
		}
	}
	return list(parts)
}

// assistantRun is the state of a run besides its name: the calls that it waits for, the
// function that it called, and the outputs that the client sent.
type assistantRun struct {
	wants   []string
	called  string
	outputs []string
}

var activeStates = []string{"queued", "in_progress", "requires_action", "cancelling"}

// activeRun is the run that is active in a thread; nil when there is none.
func activeRun(x *exchange, thread string) *resource {
	x.s.objects.changes.Lock()
	defer x.s.objects.changes.Unlock()
	return first(x.s.objects.find("run", func(n *resource) bool { return n.parent == thread && slices.Contains(activeStates, n.state) }))
}

var runRules = parseRules(`assistant_id!:s model instructions additional_instructions metadata temperature:0..2 top_p:0..1 stream:b
	max_prompt_tokens:256..2147483648i max_completion_tokens:256..2147483648i truncation_strategy tool_choice parallel_tool_calls:b response_format reasoning_effort
	tools<20[]{... type!=code_interpreter|function|file_search function{... name!:s}} additional_messages[]{role!=user|assistant content!! attachments metadata}
	thread{messages[]{role!=user|assistant content!!:sa[]{... type!=text|image_url|image_file} attachments metadata} tool_resources metadata} tool_resources`)

// createRun serves POST /threads/{id}/runs and /threads/runs, which also makes the thread;
// plain and streamed.
func createRun(x *exchange) *apiError {
	c := collections()["run"]
	thread := ""
	if len(x.vars) > 0 {
		var e *apiError
		if thread, e = c.begin(x, false); e != nil {
			return e
		}
	} else if e := beta(x); e != nil {
		return e
	}
	v, e := c.body(x, runRules)
	if e != nil {
		return e
	}
	if extra := map[bool]string{true: "additional_messages", false: "thread"}[thread == ""]; v.get(extra).given() {
		return badRequest(extra, "unknown_parameter", "Unknown parameter: '"+extra+"'.")
	}
	a := x.s.objects.get("assistant", v.get("assistant_id").s)
	if a == nil {
		return notFound("assistant", v.get("assistant_id").s)
	}
	if x.model = a.model; v.get("model").given() {
		if e := takeModel(x, v); e != nil {
			return e
		}
	}
	if r := activeRun(x, thread); r != nil {
		return badRequest("", "", "Thread "+thread+" already has an active run "+r.id+".")
	}
	id, done, e := begin(x, "run_", v.s)
	if done {
		return e
	}
	var created *resource
	if thread == "" {
		created = keep(x, &resource{id: x.newID("thread_", seedOf(v.s)), kind: "thread", body: v.get("thread")})
		thread = created.id
	}
	addMessages(x, thread, v.get("thread").get("messages"))
	addMessages(x, thread, v.get("additional_messages"))
	body := v
	for _, name := range []string{"instructions", "tools"} {
		if !v.get(name).given() {
			body = body.with(value{obj: []member{{name, a.body.get(name)}}})
		}
	}
	n := keep(x, &resource{id: id, kind: "run", parent: thread, model: x.model, body: body, state: "queued", run: &assistantRun{}})
	if v.get("stream").yes {
		streamRun(x, n, created)
		return nil
	}
	x.plain(id, c.write(x, n), Usage{})
	return nil
}

func requiredAction(x *exchange, n *resource) any {
	if n.state != "requires_action" {
		return nil
	}
	return json.RawMessage(fill(`{"type":"submit_tool_outputs","submit_tool_outputs":{"tool_calls":[{"id":$,"type":"function","function":{"name":$,"arguments":"{}"}}]}}`, n.run.wants[0], n.run.called))
}

// wantedTool returns the function that a run calls; a run calls one once.
func wantedTool(n *resource) string {
	if len(n.run.outputs) > 0 || n.body.get("tool_choice").s == "none" {
		return ""
	}
	for _, t := range n.body.get("tools").arr {
		if t.get("type").s == "function" {
			return t.get("function").get("name").s
		}
	}
	return ""
}

// advanceRun takes a run one step further: queued, in progress, then done or waiting for the
// outputs of its tools.
func advanceRun(x *exchange, n *resource) {
	switch n.state {
	case "queued":
		n.state = "in_progress"
	case "cancelling":
		n.state = "cancelled"
	case "in_progress":
		if wantedTool(n) != "" {
			requireAction(x, n)
			return
		}
		endRun(x, n)
		row := x.s.bill.begin("/v1/threads/runs", n.model, n.id, false)
		row.close(200, n.usage, false, "")
	}
}

func runStep(x *exchange, n *resource, kind, output string) *resource {
	body := value{kind: object, obj: []member{{"assistant_id", n.body.get("assistant_id")}, {"thread_id", value{kind: text, s: n.parent}}}}
	return keep(x, &resource{id: x.newID("step_", seedOf(n.id)), kind: "step", parent: n.id, purpose: kind, output: output, usage: n.usage, body: body, run: n.run})
}

// requireAction stops a run until the outputs of its call arrive.
func requireAction(x *exchange, n *resource) *resource {
	n.run.called, n.run.wants, n.state = wantedTool(n), []string{x.newID("call_", seedOf(n.id))}, "requires_action"
	return runStep(x, n, "tool_calls", n.run.wants[0])
}

// endRun writes the response of a run into its thread. A prompt costs six tokens, plus four
// for each message and one for four bytes; a word of the response costs one.
func endRun(x *exchange, n *resource) (message, step *resource) {
	last, prompt := "", int64(6)
	for _, m := range x.s.objects.children("message", n.parent) {
		content := m.body.get("content").s
		for _, p := range m.body.get("content").arr {
			content = p.get("text").s
		}
		if prompt += 4 + tokensOf(content); m.body.get("role").s == "user" {
			last = content
		}
	}
	answer := "A threaded answer to " + last
	if len(n.run.outputs) > 0 {
		answer = "The tool says: " + strings.Join(n.run.outputs, " ")
	}
	message = keep(x, &resource{id: x.newID("msg_", seedOf(answer)), kind: "message", parent: n.parent, name: n.id, output: n.body.get("assistant_id").s,
		body: value{kind: object, obj: []member{{"role", value{kind: text, s: "assistant"}}, {"content", value{kind: text, s: answer}}}}})
	n.usage = Usage{Input: prompt, Output: int64(len(split(answer)))}
	n.state = "completed"
	return message, runStep(x, n, "message_creation", message.id)
}

func cancelRun(x *exchange, n *resource) *apiError {
	if !slices.Contains(activeStates, n.state) {
		return badRequest("", "", "Cannot cancel run with status '"+n.state+"'.")
	}
	n.state = "cancelling"
	return nil
}

// submitOutputs serves POST .../submit_tool_outputs.
func submitOutputs(x *exchange) *apiError {
	c := collections()["run"]
	v, e := c.body(x, parseRules("tool_outputs:a stream:b"))
	if e != nil {
		return e
	}
	accept := func(n *resource) ([]byte, *apiError) {
		if n.state != "requires_action" {
			return nil, badRequest("", "", `Runs in status "`+n.state+`" do not accept tool outputs.`)
		}
		var ids, outputs []string
		for _, o := range v.get("tool_outputs").arr {
			ids, outputs = append(ids, o.get("tool_call_id").s), append(outputs, o.get("output").s)
		}
		if !slices.Equal(ids, n.run.wants) {
			return nil, badRequest("", "", fmt.Sprintf("Expected tool outputs for call_ids %q, got %q", n.run.wants, ids))
		}
		n.run.outputs, n.state = outputs, "queued"
		return c.write(x, n), nil
	}
	n := x.s.objects.child("run", x.vars[0], x.vars[1])
	if !v.get("stream").yes || n == nil {
		return c.find(x, accept)
	}
	if e := beta(x); e != nil {
		return e
	}
	locked(x, func() []byte { _, e = accept(n); return nil })
	if e != nil {
		return e
	}
	x.model = n.model
	if _, done, e := begin(x, "", n.id); done {
		return e
	}
	streamRun(x, n, nil)
	return nil
}

// streamRun sends the events of a run until it ends, or until it needs outputs of tools.
// created is the thread that was made in the same request.
func streamRun(x *exchange, n, created *resource) {
	var frames [][2]string
	event := func(name string, data []byte) { frames = append(frames, [2]string{name, string(data)}) }
	object := func(name string, n *resource) { event(name, collections()[n.kind].write(x, n)) }
	locked(x, func() []byte {
		if created != nil {
			object("thread.created", created)
		}
		if len(n.run.outputs) == 0 {
			object("thread.run.created", n)
		}
		object("thread.run.queued", n)
		n.state = "in_progress"
		object("thread.run.in_progress", n)
		if wantedTool(n) != "" {
			step := requireAction(x, n)
			object("thread.run.step.created", step)
			event("thread.run.step.delta", fill(`{"id":$,"object":"thread.run.step.delta","delta":{"step_details":{"type":"tool_calls","tool_calls":[{"index":0,"id":$,"type":"function","function":{"name":$,"arguments":"{}","output":null}}]}}}`, step.id, n.run.wants[0], n.run.called))
			object("thread.run.requires_action", n)
			return nil
		}
		message, step := endRun(x, n)
		step.state = "in_progress"
		object("thread.run.step.created", step)
		object("thread.run.step.in_progress", step)
		empty := *message
		empty.body = message.body.with(value{obj: []member{{"content", value{kind: array}}}})
		object("thread.message.created", &empty)
		object("thread.message.in_progress", &empty)
		for _, piece := range split(message.body.get("content").s) {
			event("thread.message.delta", fill(`{"id":$,"object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":$}}]}}`, message.id, piece))
		}
		object("thread.message.completed", message)
		step.state = ""
		object("thread.run.step.completed", step)
		object("thread.run.completed", n)
		return nil
	})
	s := x.startStream(n.id, n.usage)
	for i, f := range frames {
		if f[0] == "thread.message.delta" {
			s.spend(1, 0)
		}
		if i == len(frames)-1 {
			s.finish()
		}
		if !s.event(f[0], []byte(f[1])) {
			return
		}
	}
	s.last("done", []byte("[DONE]"))
}

func stepDetails(x *exchange, n *resource) any {
	if n.purpose != "tool_calls" {
		return json.RawMessage(fill(`{"type":"message_creation","message_creation":{"message_id":$}}`, n.output))
	}
	var output any
	if len(n.run.outputs) > 0 {
		output = n.run.outputs[0]
	}
	return json.RawMessage(fill(`{"type":"tool_calls","tool_calls":[{"id":$,"type":"function","function":{"name":$,"arguments":"{}","output":$}}]}`, n.output, n.run.called, output))
}
