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
		{"POST", "/assistants", assistantMade},
		{"GET", "/assistants", assistantList},
		{"GET", "/assistants/{id}", assistantOne},
		{"POST", "/assistants/{id}", assistantChanged},
		{"DELETE", "/assistants/{id}", assistantGone},
		{"POST", "/threads", threadMade},
		{"POST", "/threads/runs", threadRun},
		{"GET", "/threads/{id}", threadOne},
		{"POST", "/threads/{id}", threadChanged},
		{"DELETE", "/threads/{id}", threadGone},
		{"POST", "/threads/{id}/messages", messageMade},
		{"GET", "/threads/{id}/messages", messageList},
		{"GET", "/threads/{id}/messages/{sub}", messageOne},
		{"POST", "/threads/{id}/messages/{sub}", messageOne},
		{"DELETE", "/threads/{id}/messages/{sub}", messageGone},
		{"POST", "/threads/{id}/runs", runMade},
		{"GET", "/threads/{id}/runs", runList},
		{"GET", "/threads/{id}/runs/{sub}", runOne},
		{"POST", "/threads/{id}/runs/{sub}", runChanged},
		{"POST", "/threads/{id}/runs/{sub}/cancel", runStopped},
		{"POST", "/threads/{id}/runs/{sub}/submit_tool_outputs", runAnswered},
		{"GET", "/threads/{id}/runs/{sub}/steps", stepList},
		{"GET", "/threads/{id}/runs/{sub}/steps/{leaf}", stepOne},
	}
}

// beta refuses requests for assistants without the header that they need.
func beta(x *exchange) *apiError {
	if !slices.Contains(strings.Split(x.r.Header.Get("Openai-Beta"), ","), "assistants=v2") {
		return badRequest("", "invalid_beta", "You must provide the 'OpenAI-Beta' header to access the Assistants API. Please try again by setting the header 'OpenAI-Beta: assistants=v2'.")
	}
	return nil
}

const assistantFields = "model name description instructions tools tool_resources metadata temperature top_p response_format reasoning_effort"

var assistantBounds = map[string]int{"name": 256, "description": 512, "instructions": 256_000, "tools": 128}

func assistantBody(x *exchange) (value, *apiError) {
	if e := beta(x); e != nil {
		return value{}, e
	}
	v, e := checked(x, assistantFields)
	for _, check := range []func() *apiError{
		func() *apiError { return e },
		func() *apiError { return atMost(v, assistantBounds) },
		func() *apiError { return checkBounds(v, openAIBounds[:2]) },
		func() *apiError { return checkAssistantTools(v.get("tools")) },
		func() *apiError { return resourcesExist(x, v.get("tool_resources")) },
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

// resourcesExist checks that the files and vector stores for the tools exist.
func resourcesExist(x *exchange, r value) *apiError {
	if e := filesExist(x, r.get("code_interpreter").get("file_ids")); e != nil {
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

func assistantMade(x *exchange, _, _ string) *apiError {
	v, e := assistantBody(x)
	if e != nil {
		return e
	}
	if e := takeModel(x, v); e != nil {
		return e
	}
	id, done, e := begin(x, "asst_", v.s)
	if done {
		return e
	}
	x.plain(id, writeAssistant(keep(x, &thing{id: id, kind: "assistant", body: v, model: x.model})), Usage{})
	return nil
}

func writeAssistant(n *thing) json.RawMessage {
	v := n.body
	return doc("id", n.id, "object", "assistant", "created_at", n.created, "name", v.get("name"), "description", v.get("description"),
		"model", v.get("model"), "instructions", v.get("instructions"), "tools", v.get("tools").source("[]"), "tool_resources", v.get("tool_resources").source("{}"),
		"metadata", v.get("metadata").source("{}"), "temperature", v.get("temperature").source("1.0"), "top_p", v.get("top_p").source("1.0"),
		"response_format", v.get("response_format").source(`"auto"`))
}

func assistantList(x *exchange, _, _ string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	return listing(x, "assistant", "", "desc", nil, writeAssistant)
}

func assistantOne(x *exchange, id, _ string) *apiError {
	return one(x, "assistant", "", id, func(n *thing) (json.RawMessage, *apiError) { return writeAssistant(n), nil })
}

func assistantChanged(x *exchange, id, _ string) *apiError {
	v, e := assistantBody(x)
	if e != nil {
		return e
	}
	return one(x, "assistant", "", id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		if m := v.get("model"); m.given() {
			n.model = m.s
		}
		return writeAssistant(n), nil
	})
}

func assistantGone(x *exchange, id, _ string) *apiError {
	return gonePart(x, "assistant", "", id, "assistant.deleted")
}

// one reads or changes a thing of the assistants' API.
func one(x *exchange, kind, parent, id string, do func(*thing) (json.RawMessage, *apiError)) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	return read(x, func() (json.RawMessage, *apiError) {
		n := x.s.things.child(kind, parent, id)
		if n == nil {
			return nil, notFound(strings.ReplaceAll(kind, "_", " "), id)
		}
		return do(n)
	})
}

// gonePart deletes a thing of the assistants' API.
func gonePart(x *exchange, kind, parent, id, object string) *apiError {
	return one(x, kind, parent, id, func(n *thing) (json.RawMessage, *apiError) {
		x.s.things.drop(n)
		return doc("id", id, "object", object, "deleted", true), nil
	})
}

func threadMade(x *exchange, _, _ string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	v, e := checked(x, "messages tool_resources metadata")
	if e != nil {
		return e
	}
	if e := threadParts(x, v); e != nil {
		return e
	}
	id, done, e := begin(x, "thread_", "thread"+v.s)
	if done {
		return e
	}
	x.plain(id, writeThread(keepThread(x, id, v)), Usage{})
	return nil
}

// threadParts checks the parts of a new thread.
func threadParts(x *exchange, v value) *apiError {
	for i, m := range v.get("messages").arr {
		if e := checkThreadMessage(x, m, fmt.Sprintf("messages[%d].", i)); e != nil {
			return e
		}
	}
	return resourcesExist(x, v.get("tool_resources"))
}

func keepThread(x *exchange, id string, v value) *thing {
	n := keep(x, &thing{id: id, kind: "thread", body: v})
	for _, m := range v.get("messages").arr {
		keep(x, &thing{id: x.newID("msg_", seedOf(m.s)), kind: "message", parent: id, body: m})
	}
	return n
}

func writeThread(n *thing) json.RawMessage {
	return doc("id", n.id, "object", "thread", "created_at", n.created, "tool_resources", n.body.get("tool_resources").source("{}"), "metadata", n.body.get("metadata").source("{}"))
}

func threadOne(x *exchange, id, _ string) *apiError {
	return one(x, "thread", "", id, func(n *thing) (json.RawMessage, *apiError) { return writeThread(n), nil })
}

func threadChanged(x *exchange, id, _ string) *apiError {
	v, e := checked(x, "tool_resources metadata")
	if e != nil {
		return e
	}
	return one(x, "thread", "", id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		return writeThread(n), nil
	})
}

func threadGone(x *exchange, id, _ string) *apiError {
	return gonePart(x, "thread", "", id, "thread.deleted")
}

func checkThreadMessage(x *exchange, v value, at string) *apiError {
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
func messageMade(x *exchange, thread, _ string) *apiError {
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
	if e := checkThreadMessage(x, v, ""); e != nil {
		return e
	}
	if r := activeRun(x, thread); r != nil {
		return badRequest("", "", "Can't add messages to "+thread+" while a run "+r.id+" is active.")
	}
	id, done, e := begin(x, "msg_", v.s)
	if done {
		return e
	}
	x.plain(id, writeMessage(keep(x, &thing{id: id, kind: "message", parent: thread, body: v})), Usage{})
	return nil
}

// writeMessage writes a message of a thread; a message that a run made names the run.
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

func messageList(x *exchange, thread, _ string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	if x.s.things.get("thread", thread) == nil {
		return notFound("thread", thread)
	}
	q, _ := url.ParseQuery(x.query)
	keep := func(n *thing) bool { return q.Get("run_id") == "" || n.name == q.Get("run_id") }
	return listing(x, "message", thread, "desc", keep, writeMessage)
}

func messageOne(x *exchange, thread, id string) *apiError {
	var v value
	if x.r.Method == "POST" {
		var e *apiError
		if v, e = checked(x, "metadata"); e != nil {
			return e
		}
	}
	if x.s.things.get("thread", thread) == nil {
		return notFound("thread", thread)
	}
	return one(x, "message", thread, id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		return writeMessage(n), nil
	})
}

func messageGone(x *exchange, thread, id string) *apiError {
	return gonePart(x, "message", thread, id, "thread.message.deleted")
}
