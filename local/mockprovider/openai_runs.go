package mockprovider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// assistantRun is the state of a run. It makes progress when it is read: queued, in
// progress, then done or waiting for the outputs of its tools.
type assistantRun struct {
	assistant    string
	instructions string
	tools        value
	state        string
	wants        []string // ids of the calls that it waits for
	called       string   // name of the function that was called
	outputs      []string // outputs that the client sent
	ended        int64
}

var activeStates = []string{"queued", "in_progress", "requires_action", "cancelling"}

// activeRun is the run that is active in a thread; nil when there is none.
func activeRun(x *exchange, thread string) *thing {
	x.s.things.jobs.Lock()
	defer x.s.things.jobs.Unlock()
	for _, n := range x.s.things.children("run", thread) {
		if slices.Contains(activeStates, n.run.state) {
			return n
		}
	}
	return nil
}

const runFields = `assistant_id model instructions additional_instructions additional_messages tools metadata temperature top_p stream
	max_prompt_tokens max_completion_tokens truncation_strategy tool_choice parallel_tool_calls response_format reasoning_effort`

var runBounds = []bound{{"temperature", 0, 2, false}, {"top_p", 0, 1, false}, {"max_prompt_tokens", 256, 1 << 31, true}, {"max_completion_tokens", 256, 1 << 31, true}}

// checkRun reads the request that makes a run.
func checkRun(x *exchange, v value, fields string) (*thing, *apiError) {
	if e := checkMembers(v, "", fields); e != nil {
		return nil, e
	}
	if v.get("assistant_id").kind != text {
		return nil, missingParam("assistant_id")
	}
	for _, check := range []func() *apiError{
		func() *apiError { return checkBounds(v, runBounds) },
		func() *apiError { return atMost(v, map[string]int{"tools": 20}) },
		func() *apiError { return checkAssistantTools(v.get("tools")) },
		func() *apiError { return checkKinds(v, boolean, "stream", "parallel_tool_calls") },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	for i, m := range v.get("additional_messages").arr {
		if e := checkThreadMessage(x, m, fmt.Sprintf("additional_messages[%d].", i)); e != nil {
			return nil, e
		}
	}
	a := x.s.things.get("assistant", v.get("assistant_id").s)
	if a == nil {
		return nil, notFound("assistant", v.get("assistant_id").s)
	}
	if x.model = a.model; v.get("model").given() {
		if e := takeModel(x, v); e != nil {
			return nil, e
		}
	}
	return a, nil
}

// runMade serves POST /threads/{id}/runs, plain and streamed.
func runMade(x *exchange, thread, _ string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if x.s.things.get("thread", thread) == nil {
		return notFound("thread", thread)
	}
	a, e := checkRun(x, v, runFields)
	if e != nil {
		return e
	}
	if r := activeRun(x, thread); r != nil {
		return badRequest("", "", "Thread "+thread+" already has an active run "+r.id+".")
	}
	id, done, e := begin(x, "run_", v.s)
	if done {
		return e
	}
	for _, m := range v.get("additional_messages").arr {
		keep(x, &thing{id: x.newID("msg_", seedOf(m.s)), kind: "message", parent: thread, body: m})
	}
	beginRun(x, id, thread, v, a, nil)
	return nil
}

// threadRun serves POST /threads/runs, which also makes the thread.
func threadRun(x *exchange, _, _ string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	a, e := checkRun(x, v, strings.Replace(runFields, "additional_messages", "thread tool_resources", 1))
	if e != nil {
		return e
	}
	if e := threadParts(x, v.get("thread")); e != nil {
		return e
	}
	id, done, e := begin(x, "run_", v.s)
	if done {
		return e
	}
	thread := keepThread(x, x.newID("thread_", seedOf(v.s)), v.get("thread"))
	beginRun(x, id, thread.id, v, a, thread)
	return nil
}

// beginRun answers with a new run, or with all its events. made is the thread that was made
// in the same request.
func beginRun(x *exchange, id, thread string, v value, a, made *thing) {
	r := &assistantRun{assistant: a.id, state: "queued", tools: v.get("tools"), instructions: v.get("instructions").s}
	if !r.tools.given() {
		r.tools = a.body.get("tools")
	}
	if r.instructions == "" {
		r.instructions = a.body.get("instructions").s
	}
	n := keep(x, &thing{id: id, kind: "run", parent: thread, model: x.model, body: v, run: r})
	if !v.get("stream").yes {
		x.plain(id, writeRun(n), Usage{})
		return
	}
	streamRun(x, n, made)
}

func writeRun(n *thing) json.RawMessage {
	r, v := n.run, n.body
	var action, usage, ended any
	if r.state == "requires_action" {
		calls := []json.RawMessage{}
		for _, id := range r.wants {
			calls = append(calls, doc("id", id, "type", "function", "function", doc("name", r.called, "arguments", "{}")))
		}
		action = doc("type", "submit_tool_outputs", "submit_tool_outputs", doc("tool_calls", list(calls)))
	}
	if r.state == "completed" {
		usage = writeUsage(n.usage)
		ended = r.ended
	}
	return doc("id", n.id, "object", "thread.run", "created_at", n.created, "thread_id", n.parent, "assistant_id", r.assistant, "status", r.state,
		"required_action", action, "last_error", nil, "expires_at", n.created+600, "started_at", n.created, "cancelled_at", nil, "failed_at", nil,
		"completed_at", ended, "incomplete_details", nil, "model", n.model, "instructions", r.instructions, "tools", r.tools.source("[]"),
		"metadata", v.get("metadata").source("{}"), "usage", usage, "temperature", v.get("temperature").source("1.0"), "top_p", v.get("top_p").source("1.0"),
		"max_prompt_tokens", v.get("max_prompt_tokens"), "max_completion_tokens", v.get("max_completion_tokens"),
		"truncation_strategy", v.get("truncation_strategy").source(`{"type":"auto","last_messages":null}`), "tool_choice", v.get("tool_choice").source(`"auto"`),
		"parallel_tool_calls", v.get("parallel_tool_calls").source("true"), "response_format", v.get("response_format").source(`"auto"`))
}

func writeUsage(u Usage) json.RawMessage {
	return doc("prompt_tokens", u.Input, "completion_tokens", u.Output, "total_tokens", u.Input+u.Output)
}

// wantsTool returns the function that a run calls; a run calls one once.
func (n *thing) wantsTool() string {
	if len(n.run.outputs) > 0 || n.body.get("tool_choice").s == "none" {
		return ""
	}
	for _, t := range n.run.tools.arr {
		if t.get("type").s == "function" {
			return t.get("function").get("name").s
		}
	}
	return ""
}

// goOn takes a run one step further. The caller holds the lock of the things.
func goOn(x *exchange, n *thing) {
	switch n.run.state {
	case "queued":
		n.run.state = "in_progress"
	case "cancelling":
		n.run.state = "cancelled"
	case "in_progress":
		if n.wantsTool() != "" {
			askTools(x, n)
			return
		}
		endRun(x, n)
		row := x.s.bill.begin("/v1/threads/runs", n.model, n.id, false)
		row.close(200, n.usage, false, "")
	}
}

// askTools stops a run until the outputs of its call arrive.
func askTools(x *exchange, n *thing) *thing {
	n.run.called = n.wantsTool()
	n.run.wants = []string{x.newID("call_", seedOf(n.id))}
	n.run.state = "requires_action"
	return keep(x, &thing{id: x.newID("step_", seedOf(n.id)), kind: "step", parent: n.id, name: n.parent, purpose: "tool_calls", output: n.run.wants[0]})
}

// endRun writes the answer of a run into its thread. A prompt costs six tokens, plus four
// for each message and one for four bytes; a word of the answer costs one.
func endRun(x *exchange, n *thing) (message, step *thing) {
	last, prompt := "", int64(6)
	for _, m := range x.s.things.children("message", n.parent) {
		said := m.body.get("content").s
		for _, p := range m.body.get("content").arr {
			said = p.get("text").s
		}
		if prompt += 4 + tokensOf(said); m.body.get("role").s == "user" {
			last = said
		}
	}
	answer := "A threaded answer to " + last
	if len(n.run.outputs) > 0 {
		answer = "The tool says: " + strings.Join(n.run.outputs, " ")
	}
	message = keep(x, &thing{id: x.newID("msg_", seedOf(answer)), kind: "message", parent: n.parent, name: n.id, output: n.run.assistant, body: value{kind: object, obj: []member{
		{"role", value{kind: text, s: "assistant"}}, {"content", value{kind: text, s: answer}},
	}}})
	n.usage = Usage{Input: prompt, Output: int64(len(split(answer)))}
	n.run.state, n.run.ended = "completed", x.s.opts.Now().Unix()
	step = keep(x, &thing{id: x.newID("step_", seedOf(n.id)), kind: "step", parent: n.id, name: n.parent, purpose: "message_creation", output: message.id, usage: n.usage})
	return message, step
}

func runList(x *exchange, thread, _ string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	if x.s.things.get("thread", thread) == nil {
		return notFound("thread", thread)
	}
	return listing(x, "run", thread, "desc", nil, writeRun)
}

func runOne(x *exchange, thread, id string) *apiError {
	pollSoon(x)
	return one(x, "run", thread, id, func(n *thing) (json.RawMessage, *apiError) {
		goOn(x, n)
		return writeRun(n), nil
	})
}

func runChanged(x *exchange, thread, id string) *apiError {
	v, e := checked(x, "metadata")
	if e != nil {
		return e
	}
	return one(x, "run", thread, id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		return writeRun(n), nil
	})
}

func runStopped(x *exchange, thread, id string) *apiError {
	if e := noBody(x); e != nil {
		return e
	}
	return one(x, "run", thread, id, func(n *thing) (json.RawMessage, *apiError) {
		if !slices.Contains(activeStates, n.run.state) {
			return nil, badRequest("", "", "Cannot cancel run with status '"+n.run.state+"'.")
		}
		n.run.state = "cancelling"
		return writeRun(n), nil
	})
}

// runAnswered serves POST .../submit_tool_outputs.
func runAnswered(x *exchange, thread, id string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := checkMembers(v, "", "tool_outputs stream"); e != nil {
		return e
	}
	n := x.s.things.child("run", thread, id)
	stream := v.get("stream").yes
	take := func(n *thing) (json.RawMessage, *apiError) {
		if n.run.state != "requires_action" {
			return nil, badRequest("", "", `Runs in status "`+n.run.state+`" do not accept tool outputs.`)
		}
		var given, said []string
		for _, o := range v.get("tool_outputs").arr {
			given, said = append(given, o.get("tool_call_id").s), append(said, o.get("output").s)
		}
		if !slices.Equal(given, n.run.wants) {
			return nil, badRequest("", "", fmt.Sprintf("Expected tool outputs for call_ids %q, got %q", n.run.wants, given))
		}
		n.run.outputs, n.run.state = said, "queued"
		return writeRun(n), nil
	}
	if !stream || n == nil {
		return one(x, "run", thread, id, take)
	}
	if e := beta(x); e != nil {
		return e
	}
	x.s.things.jobs.Lock()
	_, e = take(n)
	x.s.things.jobs.Unlock()
	if e != nil {
		return e
	}
	x.model = n.model
	if _, done, e := begin(x, "", id); done {
		return e
	}
	streamRun(x, n, nil)
	return nil
}

// streamRun sends the events of a run until it ends, or until it needs outputs of tools.
func streamRun(x *exchange, n, made *thing) {
	x.s.things.jobs.Lock()
	var frames [][2]string
	event := func(name string, data json.RawMessage) { frames = append(frames, [2]string{name, string(data)}) }
	if made != nil {
		event("thread.created", writeThread(made))
	}
	if len(n.run.outputs) == 0 {
		event("thread.run.created", writeRun(n))
	}
	event("thread.run.queued", writeRun(n))
	n.run.state = "in_progress"
	event("thread.run.in_progress", writeRun(n))
	if n.wantsTool() != "" {
		step := askTools(x, n)
		event("thread.run.step.created", writeStep(step, "in_progress", n))
		event("thread.run.step.delta", doc("id", step.id, "object", "thread.run.step.delta", "delta", doc("step_details", doc("type", "tool_calls", "tool_calls",
			list([]json.RawMessage{doc("index", 0, "id", n.run.wants[0], "type", "function", "function", doc("name", n.run.called, "arguments", "{}", "output", nil))})))))
		event("thread.run.requires_action", writeRun(n))
	} else {
		message, step := endRun(x, n)
		n.run.state = "in_progress"
		event("thread.run.step.created", writeStep(step, "in_progress", n))
		event("thread.run.step.in_progress", writeStep(step, "in_progress", n))
		empty := *message
		empty.body = message.body.with(value{obj: []member{{"content", value{kind: array}}}})
		event("thread.message.created", writeMessage(&empty))
		event("thread.message.in_progress", writeMessage(&empty))
		for _, piece := range split(message.body.get("content").s) {
			event("thread.message.delta", doc("id", message.id, "object", "thread.message.delta", "delta", doc("content",
				list([]json.RawMessage{doc("index", 0, "type", "text", "text", doc("value", piece))}))))
		}
		event("thread.message.completed", writeMessage(message))
		event("thread.run.step.completed", writeStep(step, "completed", n))
		n.run.state = "completed"
		event("thread.run.completed", writeRun(n))
	}
	full := n.usage
	x.s.things.jobs.Unlock()
	s := x.startStream(n.id, full)
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

func writeStep(n *thing, state string, run *thing) json.RawMessage {
	var usage, ended any
	if state == "completed" {
		usage, ended = writeUsage(n.usage), n.created
	}
	details := doc("type", "message_creation", "message_creation", doc("message_id", n.output))
	if n.purpose == "tool_calls" {
		var output any
		if len(run.run.outputs) > 0 {
			output = run.run.outputs[0]
		}
		details = doc("type", "tool_calls", "tool_calls", list([]json.RawMessage{doc("id", n.output, "type", "function", "function", doc("name", run.run.called, "arguments", "{}", "output", output))}))
	}
	return doc("id", n.id, "object", "thread.run.step", "created_at", n.created, "run_id", n.parent, "assistant_id", run.run.assistant, "thread_id", n.name,
		"type", n.purpose, "status", state, "step_details", details, "last_error", nil, "expired_at", nil, "cancelled_at", nil, "failed_at", nil,
		"completed_at", ended, "metadata", doc(), "usage", usage)
}

// stepState is completed, unless the run still waits for outputs of calls.
func stepState(n, run *thing) string {
	if n.purpose == "tool_calls" && len(run.run.outputs) == 0 {
		return "in_progress"
	}
	return "completed"
}

func stepList(x *exchange, thread, id string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	run := x.s.things.child("run", thread, id)
	if run == nil {
		return notFound("run", id)
	}
	return listing(x, "step", id, "desc", nil, func(n *thing) json.RawMessage { return writeStep(n, stepState(n, run), run) })
}

func stepOne(x *exchange, thread, id string) *apiError {
	run := x.s.things.child("run", thread, id)
	if run == nil {
		return notFound("run", id)
	}
	return one(x, "step", id, x.leaf, func(n *thing) (json.RawMessage, *apiError) { return writeStep(n, stepState(n, run), run), nil })
}
