package mockprovider

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// threadOperations are assistants, threads and their messages; runs are in
// openai_runs.go.
func threadOperations() []operation {
	return []operation{
		{"POST", "/assistants", (*exchange).assistantMade},
		{"GET", "/assistants", (*exchange).assistantList},
		{"GET", "/assistants/{id}", (*exchange).assistantOne},
		{"POST", "/assistants/{id}", (*exchange).assistantChanged},
		{"DELETE", "/assistants/{id}", (*exchange).assistantGone},
		{"POST", "/threads", (*exchange).threadMade},
		{"POST", "/threads/runs", (*exchange).threadRun},
		{"GET", "/threads/{id}", (*exchange).threadOne},
		{"POST", "/threads/{id}", (*exchange).threadChanged},
		{"DELETE", "/threads/{id}", (*exchange).threadGone},
		{"POST", "/threads/{id}/messages", (*exchange).messageMade},
		{"GET", "/threads/{id}/messages", (*exchange).messageList},
		{"GET", "/threads/{id}/messages/{sub}", (*exchange).messageOne},
		{"POST", "/threads/{id}/messages/{sub}", (*exchange).messageOne},
		{"DELETE", "/threads/{id}/messages/{sub}", (*exchange).messageGone},
		{"POST", "/threads/{id}/runs", (*exchange).runMade},
		{"GET", "/threads/{id}/runs", (*exchange).runList},
		{"GET", "/threads/{id}/runs/{sub}", (*exchange).runOne},
		{"POST", "/threads/{id}/runs/{sub}", (*exchange).runChanged},
		{"POST", "/threads/{id}/runs/{sub}/cancel", (*exchange).runStopped},
		{"POST", "/threads/{id}/runs/{sub}/submit_tool_outputs", (*exchange).runAnswered},
		{"GET", "/threads/{id}/runs/{sub}/steps", (*exchange).stepList},
		{"GET", "/threads/{id}/runs/{sub}/steps/{leaf}", (*exchange).stepOne},
	}
}

// beta refuses requests to assistants without the header that they need.
func (x *exchange) beta() *apiError {
	if !slices.Contains(strings.Split(x.r.Header.Get("Openai-Beta"), ","), "assistants=v2") {
		return badRequest("", "invalid_beta", "You must provide the 'OpenAI-Beta' header to access the Assistants API. Please try again by setting the header 'OpenAI-Beta: assistants=v2'.")
	}
	return nil
}

const assistantFields = "model name description instructions tools tool_resources metadata temperature top_p response_format reasoning_effort"

var assistantBounds = map[string]int{"name": 256, "description": 512, "instructions": 256_000, "tools": 128}

func (x *exchange) assistantBody() (value, *apiError) {
	if e := x.beta(); e != nil {
		return value{}, e
	}
	v, e := x.checked(assistantFields)
	for _, check := range []func() *apiError{
		func() *apiError { return e },
		func() *apiError { return atMost(v, assistantBounds) },
		func() *apiError { return checkBounds(v, openAIBounds[:2]) },
		func() *apiError { return checkAssistantTools(v.get("tools")) },
		func() *apiError { return x.resourcesExist(v.get("tool_resources")) },
	} {
		if e := check(); e != nil {
			return v, e
		}
	}
	return v, nil
}

func checkAssistantTools(tools value) *apiError {
	for i, t := range tools.arr {
		at := fmt.Sprintf("tools[%d]", i)
		switch t.get("type").s {
		case "code_interpreter", "file_search":
		case "function":
			if t.get("function").get("name").kind != text {
				return missingParam(at + ".function.name")
			}
		default:
			return unsupportedValue(at+".type", t.get("type").s, "code_interpreter", "function", "file_search")
		}
	}
	return nil
}

// resourcesExist checks the files and vector stores that tools are to use.
func (x *exchange) resourcesExist(r value) *apiError {
	if e := x.filesExist(r.get("code_interpreter").get("file_ids")); e != nil {
		return e
	}
	stores := r.get("file_search").get("vector_store_ids")
	if len(stores.arr) > 1 {
		return badRequest("tool_resources.file_search.vector_store_ids", "array_above_max_length", "At most one vector store can be attached.")
	}
	for _, s := range stores.arr {
		if x.s.things.get("vector_store", s.s) == nil {
			return notFound("vector store", s.s)
		}
	}
	return nil
}

func (x *exchange) assistantMade(_, _ string) *apiError {
	v, e := x.assistantBody()
	if e != nil {
		return e
	}
	if e := x.takeModel(v); e != nil {
		return e
	}
	id, done, e := x.begin("asst_", v.s)
	if done {
		return e
	}
	x.plain(id, writeAssistant(x.keep(&thing{id: id, kind: "assistant", body: v, model: x.model})), Usage{})
	return nil
}

func writeAssistant(n *thing) json.RawMessage {
	v := n.body
	return doc("id", n.id, "object", "assistant", "created_at", n.created, "name", v.get("name"), "description", v.get("description"),
		"model", v.get("model"), "instructions", v.get("instructions"), "tools", v.get("tools").source("[]"), "tool_resources", v.get("tool_resources").source("{}"),
		"metadata", v.get("metadata").source("{}"), "temperature", v.get("temperature").source("1.0"), "top_p", v.get("top_p").source("1.0"),
		"response_format", v.get("response_format").source(`"auto"`))
}

func (x *exchange) assistantList(_, _ string) *apiError {
	if e := x.beta(); e != nil {
		return e
	}
	return x.listing("assistant", "", "desc", nil, writeAssistant)
}

func (x *exchange) assistantOne(id, _ string) *apiError {
	return x.one("assistant", "", id, func(n *thing) (json.RawMessage, *apiError) { return writeAssistant(n), nil })
}

func (x *exchange) assistantChanged(id, _ string) *apiError {
	v, e := x.assistantBody()
	if e != nil {
		return e
	}
	return x.one("assistant", "", id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		if m := v.get("model"); m.given() {
			n.model = m.s
		}
		return writeAssistant(n), nil
	})
}

func (x *exchange) assistantGone(id, _ string) *apiError {
	return x.gonePart("assistant", "", id, "assistant.deleted")
}

// one reads a thing of the assistants' API, or changes it.
func (x *exchange) one(kind, parent, id string, do func(*thing) (json.RawMessage, *apiError)) *apiError {
	if e := x.beta(); e != nil {
		return e
	}
	return x.read(func() (json.RawMessage, *apiError) {
		n := x.s.things.child(kind, parent, id)
		if n == nil {
			return nil, notFound(strings.ReplaceAll(kind, "_", " "), id)
		}
		return do(n)
	})
}

// gonePart forgets a thing of the assistants' API.
func (x *exchange) gonePart(kind, parent, id, object string) *apiError {
	return x.one(kind, parent, id, func(n *thing) (json.RawMessage, *apiError) {
		x.s.things.drop(n)
		return doc("id", id, "object", object, "deleted", true), nil
	})
}

func (x *exchange) threadMade(_, _ string) *apiError {
	if e := x.beta(); e != nil {
		return e
	}
	v, e := x.checked("messages tool_resources metadata")
	if e != nil {
		return e
	}
	if e := x.threadParts(v); e != nil {
		return e
	}
	id, done, e := x.begin("thread_", "thread"+v.s)
	if done {
		return e
	}
	x.plain(id, writeThread(x.keepThread(id, v)), Usage{})
	return nil
}

// threadParts checks what a thread is made of.
func (x *exchange) threadParts(v value) *apiError {
	for i, m := range v.get("messages").arr {
		if e := x.checkThreadMessage(m, fmt.Sprintf("messages[%d].", i)); e != nil {
			return e
		}
	}
	return x.resourcesExist(v.get("tool_resources"))
}

func (x *exchange) keepThread(id string, v value) *thing {
	n := x.keep(&thing{id: id, kind: "thread", body: v})
	for _, m := range v.get("messages").arr {
		x.keep(&thing{id: x.newID("msg_", seedOf(m.s)), kind: "message", parent: id, body: m})
	}
	return n
}

func writeThread(n *thing) json.RawMessage {
	return doc("id", n.id, "object", "thread", "created_at", n.created, "tool_resources", n.body.get("tool_resources").source("{}"), "metadata", n.body.get("metadata").source("{}"))
}

func (x *exchange) threadOne(id, _ string) *apiError {
	return x.one("thread", "", id, func(n *thing) (json.RawMessage, *apiError) { return writeThread(n), nil })
}

func (x *exchange) threadChanged(id, _ string) *apiError {
	v, e := x.checked("tool_resources metadata")
	if e != nil {
		return e
	}
	return x.one("thread", "", id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		return writeThread(n), nil
	})
}

func (x *exchange) threadGone(id, _ string) *apiError {
	return x.gonePart("thread", "", id, "thread.deleted")
}

func (x *exchange) checkThreadMessage(v value, at string) *apiError {
	if e := checkMembers(v, at, "role content attachments metadata"); e != nil {
		return e
	}
	if role := v.get("role"); !role.given() {
		return missingParam(at + "role")
	} else if role.s != "user" && role.s != "assistant" {
		return unsupportedValue(at+"role", role.s, "user", "assistant")
	}
	c := v.get("content")
	if !c.given() || c.kind == array && len(c.arr) == 0 || c.kind == text && c.s == "" {
		return missingParam(at + "content")
	}
	for i, p := range c.arr {
		switch p.get("type").s {
		case "text", "image_url":
		case "image_file":
			if id := p.get("image_file").get("file_id").s; x.s.things.get("file", id) == nil {
				return notFound("File", id)
			}
		default:
			return unsupportedValue(fmt.Sprintf("%scontent[%d].type", at, i), p.get("type").s, "text", "image_url", "image_file")
		}
	}
	for _, a := range v.get("attachments").arr {
		if id := a.get("file_id").s; x.s.things.get("file", id) == nil {
			return notFound("File", id)
		}
	}
	return nil
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
	if e := x.checkThreadMessage(v, ""); e != nil {
		return e
	}
	if r := x.activeRun(thread); r != nil {
		return badRequest("", "", "Can't add messages to "+thread+" while a run "+r.id+" is active.")
	}
	id, done, e := x.begin("msg_", v.s)
	if done {
		return e
	}
	x.plain(id, writeMessage(x.keep(&thing{id: id, kind: "message", parent: thread, body: v})), Usage{})
	return nil
}

// writeMessage writes a message of a thread; what a run made names it.
func writeMessage(n *thing) json.RawMessage {
	v := n.body
	parts := []json.RawMessage{}
	if c := v.get("content"); c.kind == text {
		parts = append(parts, threadText(c.s))
	} else {
		for _, p := range c.arr {
			if p.get("type").s == "text" {
				parts = append(parts, threadText(p.get("text").s))
			} else {
				parts = append(parts, p.source("null"))
			}
		}
	}
	return doc("id", n.id, "object", "thread.message", "created_at", n.created, "thread_id", n.parent, "role", v.get("role"), "status", "completed",
		"content", list(parts), "assistant_id", orNull(n.output), "run_id", orNull(n.name), "attachments", v.get("attachments").source("[]"),
		"metadata", v.get("metadata").source("{}"), "incomplete_details", nil, "completed_at", n.created)
}

func threadText(s string) json.RawMessage {
	return doc("type", "text", "text", doc("value", s, "annotations", []string{}))
}

func (x *exchange) messageList(thread, _ string) *apiError {
	if e := x.beta(); e != nil {
		return e
	}
	if x.s.things.get("thread", thread) == nil {
		return notFound("thread", thread)
	}
	q, _ := url.ParseQuery(x.query)
	keep := func(n *thing) bool { return q.Get("run_id") == "" || n.name == q.Get("run_id") }
	return x.listing("message", thread, "desc", keep, writeMessage)
}

func (x *exchange) messageOne(thread, id string) *apiError {
	var v value
	if x.r.Method == "POST" {
		var e *apiError
		if v, e = x.checked("metadata"); e != nil {
			return e
		}
	}
	if x.s.things.get("thread", thread) == nil {
		return notFound("thread", thread)
	}
	return x.one("message", thread, id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		return writeMessage(n), nil
	})
}

func (x *exchange) messageGone(thread, id string) *apiError {
	return x.gonePart("message", thread, id, "thread.message.deleted")
}
