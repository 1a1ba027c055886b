package mockprovider

import (
	"slices"
	"strings"
)

// beta refuses requests to assistants without the header that they need.
func (x *exchange) beta() *apiError {
	if !slices.Contains(strings.Split(x.r.Header.Get("Openai-Beta"), ","), "assistants=v2") {
		return badRequest("", "invalid_beta", "You must provide the 'OpenAI-Beta' header to access the Assistants API. Please try again by setting the header 'OpenAI-Beta: assistants=v2'.")
	}
	return nil
}

// made makes the handler that makes a thing of a kind.
func made(kind, prefix string) func(x *exchange, id, sub string) *apiError {
	return func(x *exchange, _, _ string) *apiError {
		if e := x.beta(); e != nil {
			return e
		}
		v := value{kind: object}
		if len(x.body) > 0 {
			var e *apiError
			if v, e = x.parseBody(); e != nil {
				return e
			}
		}
		if kind == "assistant" {
			if e := x.takeModel(v); e != nil {
				return e
			}
		}
		for _, f := range v.get("file_ids").arr {
			if x.s.things.get("file", f.s) == nil {
				return notFound("File", f.s)
			}
		}
		id, done, e := x.begin(prefix, kind+v.s)
		if done {
			return e
		}
		n := x.keep(&thing{id: id, kind: kind, body: v, model: x.model})
		x.plain(id, appendThing(nil, n), Usage{})
		return nil
	}
}

func appendThing(b []byte, n *thing) []byte {
	b = appendString(append(b, `{"id":`...), n.id)
	b = append(b, `,"object":"`+n.kind+`"`...)
	b = appendInt(b, `,"created_at":`, n.created, "")
	for _, m := range n.body.obj {
		if m.name == "name" || m.name == "model" || m.name == "instructions" {
			b = appendString(append(append(b, `,"`+m.name+`"`...), ':'), m.v.s)
		}
	}
	if n.kind == "vector_store" {
		b = append(b, `,"status":"completed","usage_bytes":0,"file_counts":{"in_progress":0,"completed":0,"failed":0,"cancelled":0,"total":0}`...)
	}
	return append(b, `,"metadata":{}}`...)
}

func listOf(kind string) func(x *exchange, id, sub string) *apiError {
	return func(x *exchange, _, _ string) *apiError {
		if e := x.beta(); e != nil {
			return e
		}
		return x.paged(kind, "", nil, appendThing)
	}
}

func oneOf(kind string) func(x *exchange, id, sub string) *apiError {
	return func(x *exchange, id, _ string) *apiError {
		if e := x.beta(); e != nil {
			return e
		}
		n := x.s.things.get(kind, id)
		if n == nil {
			return notFound(kind, id)
		}
		return x.listed(appendThing(nil, n))
	}
}

func goneOf(kind string) func(x *exchange, id, sub string) *apiError {
	return func(x *exchange, id, _ string) *apiError {
		if e := x.beta(); e != nil {
			return e
		}
		if !x.s.things.remove(kind, id) {
			return notFound(kind, id)
		}
		return x.listed(append(appendString([]byte(`{"id":`), id), `,"object":"`+kind+`.deleted","deleted":true}`...))
	}
}

// messageMade serves POST /threads/{id}/messages.
func (x *exchange) messageMade(thread, _ string) *apiError {
	if e := x.beta(); e != nil {
		return e
	}
	v, e := x.parseBody()
	if e != nil {
		return e
	}
	if x.s.things.get("thread", thread) == nil {
		return notFound("thread", thread)
	}
	if v.get("role").kind != text || !v.get("content").given() {
		return badRequest("role", "missing_required_parameter", "Missing required parameter: 'role' or 'content'.")
	}
	id, done, e := x.begin("msg_", v.s)
	if done {
		return e
	}
	n := x.keep(&thing{id: id, kind: "message", parent: thread, body: v})
	b := appendString([]byte(`{"id":`), n.id)
	b = appendString(append(b, `,"object":"thread.message","thread_id":`...), thread)
	b = appendString(append(b, `,"role":`...), v.get("role").s)
	x.plain(id, append(b, `,"status":"completed","content":[],"metadata":{}}`...), Usage{})
	return nil
}

// runMade serves POST /threads/{id}/runs, plain and streamed. A run costs twelve
// tokens in and five out.
func (x *exchange) runMade(thread, _ string) *apiError {
	if e := x.beta(); e != nil {
		return e
	}
	v, e := x.parseBody()
	if e != nil {
		return e
	}
	a := x.s.things.get("assistant", v.get("assistant_id").s)
	if x.s.things.get("thread", thread) == nil || a == nil {
		return notFound("thread or assistant", thread)
	}
	if x.model = a.model; v.get("model").given() {
		if e := x.takeModel(v); e != nil {
			return e
		}
	}
	id, done, e := x.begin("run_", v.s)
	if done {
		return e
	}
	n := x.keep(&thing{id: id, kind: "run", parent: thread, name: a.id, model: x.model, usage: Usage{Input: 12, Output: 5}})
	if !v.get("stream").yes {
		x.plain(id, appendRun(nil, n), n.usage)
		return nil
	}
	s := x.startStream(id, n.usage)
	s.event("thread.run.created", appendRun(nil, n))
	s.event("thread.message.delta", []byte(`{"id":"msg_mock","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"A threaded answer"}}]}}`))
	n.reads = 2
	s.spend(n.usage.Output, 0)
	s.finish()
	s.event("thread.run.completed", appendRun(nil, n))
	s.last("done", []byte("[DONE]"))
	return nil
}

func appendRun(b []byte, n *thing) []byte {
	b = appendString(append(b, `{"id":`...), n.id)
	b = appendString(append(b, `,"object":"thread.run","thread_id":`...), n.parent)
	b = appendString(append(b, `,"assistant_id":`...), n.name)
	b = appendString(append(b, `,"model":`...), n.model)
	state := [...]string{"queued", "in_progress", "completed"}[min(n.reads, 2)]
	if n.stopped {
		state = "cancelled"
	}
	b = append(b, `,"status":"`+state+`","usage":`...)
	if state != "completed" {
		return append(b, "null}"...)
	}
	b = appendInt(b, `{"prompt_tokens":`, n.usage.Input, "")
	b = appendInt(b, `,"completion_tokens":`, n.usage.Output, "")
	return appendInt(b, `,"total_tokens":`, n.usage.Input+n.usage.Output, "}}")
}

func (x *exchange) runOne(thread, id string) *apiError {
	return x.run(thread, id, func(n *thing) { n.reads++ })
}

func (x *exchange) runStopped(thread, id string) *apiError {
	if len(x.body) > 0 {
		return badRequest("", "", "This request takes no body.")
	}
	return x.run(thread, id, func(n *thing) { n.stopped = true })
}

func (x *exchange) run(thread, id string, do func(*thing)) *apiError {
	if e := x.beta(); e != nil {
		return e
	}
	n := x.s.things.get("run", id)
	if n == nil || n.parent != thread {
		return notFound("run", id)
	}
	return x.listed(x.changed(n, do, appendRun))
}
