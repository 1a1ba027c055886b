package mockprovider

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// keptOperations are stored chats, conversations, and operations on a response besides
// reading it.
func keptOperations() []operation {
	return []operation{
		{"GET", "/chat/completions", storedChats},
		{"GET", "/chat/completions/{id}", storedChat},
		{"POST", "/chat/completions/{id}", storedChat},
		{"DELETE", "/chat/completions/{id}", storedChatGone},
		{"GET", "/chat/completions/{id}/messages", storedMessages},
		{"POST", "/responses/input_tokens", inputTokens},
		{"POST", "/responses/{id}/cancel", responseStopped},
		{"POST", "/responses/compact", compacted},
		{"POST", "/decisions", decided},
		{"POST", "/conversations", conversationMade},
		{"GET", "/conversations/{id}", conversationOne},
		{"POST", "/conversations/{id}", conversationOne},
		{"DELETE", "/conversations/{id}", conversationGone},
		{"POST", "/conversations/{id}/items", itemsMade},
		{"GET", "/conversations/{id}/items", itemList},
		{"GET", "/conversations/{id}/items/{sub}", itemOne},
		{"DELETE", "/conversations/{id}/items/{sub}", itemGone},
	}
}

// store stores a chat if the request sets store.
func (c *chatAnswer) store(v value) {
	if v.get("store").yes {
		keep(c.x, &thing{id: c.id, kind: "chat", model: c.x.model, body: v, content: c.body()})
	}
}

// writeChat writes a stored chat: its answer, its metadata and its settings.
func writeChat(n *thing) json.RawMessage {
	b := append(slices.Clone(n.content[:len(n.content)-1]), `,"metadata":`...)
	b = append(append(b, n.body.get("metadata").source("{}")...), `,"request_id":"req_`+n.id+`","tool_choice":`...)
	b = append(append(b, n.body.get("tool_choice").source("null")...), `,"tools":`...)
	return append(append(b, n.body.get("tools").source("null")...), '}')
}

func storedChats(x *exchange, _, _ string) *apiError {
	q, _ := url.ParseQuery(x.query)
	return listing(x, "chat", "", "asc", func(n *thing) bool {
		for name, want := range q {
			if key, ok := strings.CutPrefix(name, "metadata["); ok && n.body.get("metadata").get(strings.TrimSuffix(key, "]")).s != want[0] {
				return false
			}
		}
		return q.Get("model") == "" || q.Get("model") == n.model
	}, writeChat)
}

func storedChat(x *exchange, id, _ string) *apiError {
	var v value
	if x.r.Method == "POST" {
		var e *apiError
		if v, e = checked(x, "metadata"); e != nil {
			return e
		}
		if !v.get("metadata").given() {
			return missingParam("metadata")
		}
	}
	return held(x, "chat", "", id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		return writeChat(n), nil
	})
}

func storedChatGone(x *exchange, id, _ string) *apiError {
	return forgotten(x, "chat", "", id, "chat.completion.deleted")
}

func storedMessages(x *exchange, id, _ string) *apiError {
	return held(x, "chat", "", id, func(n *thing) (json.RawMessage, *apiError) {
		rows := []json.RawMessage{}
		for i, m := range n.body.get("messages").arr {
			b := m.source("{}")
			rows = append(rows, append(append(slices.Clone(b[:len(b)-1]), `,"id":`...), append(appendString(nil, id+"-"+string(rune('0'+i))), '}')...))
		}
		return doc("object", "list", "data", list(rows), "first_id", id+"-0", "last_id", id+"-"+string(rune('0'+max(0, len(rows)-1))), "has_more", false), nil
	})
}

// inputTokens counts a request of POST /responses.
func inputTokens(x *exchange, _, _ string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkResponse(x, v)
	if e != nil {
		return e
	}
	return listed(x, doc("object", "response.input_tokens", "input_tokens", q.prompt))
}

// compacted serves POST /responses/compact: the conversation becomes one item.
func compacted(x *exchange, _, _ string) *apiError {
	return usedByRequest(x, "resp_", func(id, usage json.RawMessage) json.RawMessage {
		return doc("id", id, "object", "response.compaction", "created_at", x.s.opts.Now().Unix(), "output", json.RawMessage(`[{"id":"cmp_1","type":"compaction","encrypted_content":"c2hvcnQ="}]`), "usage", usage)
	})
}

// decided serves POST /decisions.
func decided(x *exchange, _, _ string) *apiError {
	return usedByRequest(x, "dec_", func(id, usage json.RawMessage) json.RawMessage {
		return doc("id", id, "object", "decision", "created_at", x.s.opts.Now().Unix(), "model", x.model, "decision", "yes", "usage", usage)
	})
}

// usedByRequest answers a request in the format of POST /responses with an object that
// contains its usage.
func usedByRequest(x *exchange, prefix string, object func(id, usage json.RawMessage) json.RawMessage) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkResponse(x, v)
	if e != nil {
		return e
	}
	if e := x.settle(q.seed); e != nil {
		return e
	}
	id := x.newID(prefix, q.seed)
	x.row, x.hasRow = x.s.bill.begin(x.path, x.model, id, false), true
	if done, e := x.misbehave(); done {
		return e
	}
	u := Usage{Input: q.prompt, Output: 12}
	usage := doc("input_tokens", u.Input, "input_tokens_details", json.RawMessage(`{"cached_tokens":0}`), "output_tokens", u.Output,
		"output_tokens_details", json.RawMessage(`{"reasoning_tokens":0}`), "total_tokens", u.Input+u.Output)
	x.plain(id, object(appendString(nil, id), usage), u)
	return nil
}

func responseStopped(x *exchange, id, _ string) *apiError {
	if e := noBody(x); e != nil {
		return e
	}
	n := x.s.things.get("response", id)
	if n == nil {
		return noResponse(id)
	}
	if !n.body.get("background").yes {
		return badRequest("", "", "Cannot cancel a synchronous response.")
	}
	return listed(x, n.content)
}

// remembered checks the earlier response and the conversation that a request names.
func remembered(x *exchange, v value) *apiError {
	if id := v.get("previous_response_id"); id.given() && x.s.things.get("response", id.s) == nil {
		return badRequest("previous_response_id", "previous_response_not_found", "Previous response with id '"+id.s+"' not found.")
	}
	c := v.get("conversation")
	if !c.given() {
		return nil
	}
	if v.get("previous_response_id").given() {
		return badRequest("conversation", "mutually_exclusive_parameters", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.")
	}
	if x.s.things.get("conversation", c.s+c.get("id").s) == nil || c.kind == object && c.get("id").kind != text {
		return &apiError{status: http.StatusNotFound, message: "Conversation with id '" + c.s + c.get("id").s + "' not found."}
	}
	return nil
}

// continued adds the turn to the conversation of the request.
func (r *responseAnswer) continued() {
	c := r.v.get("conversation")
	if !c.given() {
		return
	}
	id := c.get("id").s
	if c.kind == text {
		id = c.s
	}
	in := r.v.get("input")
	if in.kind == text {
		keepItem(r.x, id, doc("type", "message", "role", "user", "content", list([]json.RawMessage{doc("type", "input_text", "text", in.s)})))
	}
	for _, item := range in.arr {
		keepItem(r.x, id, item.source("{}"))
	}
	for i := range r.items {
		keepItem(r.x, id, r.item(nil, &r.items[i], true))
	}
}

// keepItem stores an item of a conversation under a new id.
func keepItem(x *exchange, conversation string, raw json.RawMessage) *thing {
	v, err := parseJSON(string(raw))
	if err != nil {
		return nil
	}
	n := &thing{id: v.get("id").s, kind: "item", parent: conversation}
	if n.id == "" {
		prefix := map[string]string{"function_call": "fc_", "function_call_output": "fco_", "reasoning": "rs_"}[v.get("type").s]
		if prefix == "" {
			prefix = "msg_"
		}
		n.id = x.newID(prefix, seedOf(v.s))
	}
	n.body = v.with(value{obj: []member{{"id", value{kind: text, s: n.id}}, {"status", value{kind: text, s: "completed"}}}})
	return keep(x, n)
}

func writeItem(n *thing) json.RawMessage {
	var pairs []any
	for _, m := range n.body.obj {
		v := any(m.v)
		if m.name == "content" && m.v.kind == text {
			v = list([]json.RawMessage{doc("type", "input_text", "text", m.v.s)})
		}
		pairs = append(pairs, m.name, v)
	}
	if !n.body.get("type").given() {
		pairs = append(pairs, "type", "message")
	}
	return doc(pairs...)
}

func checkItems(v value) *apiError {
	if items := v.get("items"); items.given() && items.kind != array {
		return wrongType("items", "an array of objects", items.kind)
	}
	return atMost(v, map[string]int{"items": 20})
}

func conversationMade(x *exchange, _, _ string) *apiError {
	v, e := checked(x, "items metadata")
	if e != nil {
		return e
	}
	if e := checkItems(v); e != nil {
		return e
	}
	id, done, e := begin(x, "conv_", v.s)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "conversation", body: v})
	for _, item := range v.get("items").arr {
		keepItem(x, id, item.source("{}"))
	}
	x.plain(id, writeConversation(n), Usage{})
	return nil
}

func writeConversation(n *thing) json.RawMessage {
	return doc("id", n.id, "object", "conversation", "created_at", n.created, "metadata", n.body.get("metadata").source("{}"))
}

func conversationOne(x *exchange, id, _ string) *apiError {
	var v value
	if x.r.Method == "POST" {
		var e *apiError
		if v, e = checked(x, "metadata"); e != nil {
			return e
		}
		if !v.get("metadata").given() {
			return missingParam("metadata")
		}
	}
	return held(x, "conversation", "", id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		return writeConversation(n), nil
	})
}

func conversationGone(x *exchange, id, _ string) *apiError {
	return forgotten(x, "conversation", "", id, "conversation.deleted")
}

func itemsMade(x *exchange, conversation, _ string) *apiError {
	v, e := checked(x, "items")
	if e != nil {
		return e
	}
	if len(v.get("items").arr) == 0 {
		return missingParam("items")
	}
	if e := checkItems(v); e != nil {
		return e
	}
	if x.s.things.get("conversation", conversation) == nil {
		return notFound("conversation", conversation)
	}
	row, done, e := begin(x, "", v.s)
	if done {
		return e
	}
	rows, first, last := []json.RawMessage{}, "", ""
	for _, item := range v.get("items").arr {
		n := keepItem(x, conversation, item.source("{}"))
		if last = n.id; first == "" {
			first = n.id
		}
		rows = append(rows, writeItem(n))
	}
	x.plain(row, doc("object", "list", "data", list(rows), "first_id", first, "last_id", last, "has_more", false), Usage{})
	return nil
}

func itemList(x *exchange, conversation, _ string) *apiError {
	if x.s.things.get("conversation", conversation) == nil {
		return notFound("conversation", conversation)
	}
	return listing(x, "item", conversation, "desc", nil, writeItem)
}

func itemOne(x *exchange, conversation, id string) *apiError {
	return held(x, "item", conversation, id, func(n *thing) (json.RawMessage, *apiError) { return writeItem(n), nil })
}

func itemGone(x *exchange, conversation, id string) *apiError {
	return held(x, "item", conversation, id, func(n *thing) (json.RawMessage, *apiError) {
		x.s.things.drop(n)
		return writeConversation(x.s.things.get("conversation", conversation)), nil
	})
}
