package mockprovider

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

func conversationBehaviors() map[string]behavior {
	return map[string]behavior{
		"chat": {filter: chatFilter, values: map[string]func(*exchange, *resource) any{
			"opened": func(_ *exchange, n *resource) any { return json.RawMessage(n.content[:len(n.content)-1]) },
		}},
		"conversation": {created: func(x *exchange, n *resource) {
			for _, item := range n.body.get("items").arr {
				keepItem(x, n.id, item.source("{}"))
			}
		}},
		"item": {create: createItems, values: map[string]func(*exchange, *resource) any{
			"item": func(_ *exchange, n *resource) any { return writeItem(n) },
			"conversation": func(x *exchange, n *resource) any {
				return collections()["conversation"].write(x, x.s.objects.get("conversation", n.parent))
			},
		}},
	}
}

// store stores a chat if the request sets store.
func (c *chatResponse) store(v value) {
	if v.get("store").yes {
		keep(c.x, &resource{id: c.id, kind: "chat", model: c.x.model, body: v, content: c.body()})
	}
}

// chatFilter applies the parameters metadata[KEY] of a list.
func chatFilter(x *exchange, n *resource) bool {
	q, _ := url.ParseQuery(x.query)
	for name, want := range q {
		if key, ok := strings.CutPrefix(name, "metadata["); ok && n.body.get("metadata").get(strings.TrimSuffix(key, "]")).s != want[0] {
			return false
		}
	}
	return true
}

func storedMessages(x *exchange) *apiError {
	return collections()["chat"].find(x, func(n *resource) ([]byte, *apiError) {
		var rows []json.RawMessage
		for i, m := range n.body.get("messages").arr {
			b := m.source("{}")
			rows = append(rows, append(b[:len(b)-1:len(b)-1], fill(`,"id":$}`, n.id+"-"+strconv.Itoa(i))...))
		}
		return fill(`{"object":"list","data":$,"first_id":$,"last_id":$,"has_more":false}`, list(rows), n.id+"-0", n.id+"-"+strconv.Itoa(max(0, len(rows)-1))), nil
	})
}

// inputTokens counts a request of POST /responses.
func inputTokens(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkResponse(x, v)
	if e != nil {
		return e
	}
	return listed(x, fill(`{"object":"response.input_tokens","input_tokens":$}`, q.prompt))
}

// usedByRequest returns a handler that answers a request in the format of POST /responses
// with an object that contains its usage. The object has an id, a time, the model and usage.
func usedByRequest(prefix, object string) func(*exchange) *apiError {
	return func(x *exchange) *apiError {
		v, e := parseBody(x)
		if e != nil {
			return e
		}
		q, e := checkResponse(x, v)
		if e != nil {
			return e
		}
		id, done, e := begin(x, prefix, v.get("input").s)
		if done {
			return e
		}
		u := Usage{Input: q.prompt, Output: 12}
		x.plain(id, fill(object, id, x.s.opts.Now().Unix(), x.model, appendResponseUsage(nil, u)), u)
		return nil
	}
}

// cancelResponse serves POST /responses/{id}/cancel.
func cancelResponse(x *exchange) *apiError {
	if e := noBody(x); e != nil {
		return e
	}
	return collections()["response"].find(x, func(n *resource) ([]byte, *apiError) {
		if !n.body.get("background").yes {
			return nil, badRequest("", "", "Cannot cancel a synchronous response.")
		}
		return n.content, nil
	})
}

func responseInput(x *exchange) *apiError {
	return collections()["response"].find(x, func(n *resource) ([]byte, *apiError) {
		in := n.body.get("input")
		data := json.RawMessage(in.s)
		if in.kind != array {
			data = fill(`[{"id":"msg_mock","type":"message","role":"user","content":[{"type":"input_text","text":$}]}]`, in.s)
		}
		return fill(`{"object":"list","data":$,"first_id":"msg_mock","last_id":"msg_mock","has_more":false}`, data), nil
	})
}

// remembered checks the earlier response and the conversation that a request names.
func remembered(x *exchange, v value) *apiError {
	if id := v.get("previous_response_id"); id.given() && x.s.objects.get("response", id.s) == nil {
		return badRequest("previous_response_id", "previous_response_not_found", "Previous response with id '"+id.s+"' not found.")
	}
	c := v.get("conversation")
	if !c.given() {
		return nil
	}
	if v.get("previous_response_id").given() {
		return badRequest("conversation", "mutually_exclusive_parameters", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.")
	}
	if x.s.objects.get("conversation", conversationOf(v)) == nil || c.kind == object && c.get("id").kind != text {
		return &apiError{status: 404, message: "Conversation with id '" + conversationOf(v) + "' not found."}
	}
	return nil
}

// conversationOf is the id of the conversation of a request; "" without one.
func conversationOf(v value) string {
	if c := v.get("conversation"); c.kind == object {
		return c.get("id").s
	}
	return v.get("conversation").s
}

// continued adds the turn to the conversation of the request.
func (r *responsesResponse) continued() {
	id := conversationOf(r.v)
	if id == "" {
		return
	}
	in := r.v.get("input")
	if in.kind == text {
		keepItem(r.x, id, fill(`{"type":"message","role":"user","content":[{"type":"input_text","text":$}]}`, in.s))
	}
	for _, item := range in.arr {
		keepItem(r.x, id, item.source("{}"))
	}
	for i := range r.items {
		keepItem(r.x, id, r.item(&r.items[i], true))
	}
}

// keepItem stores an item of a conversation under a new id.
func keepItem(x *exchange, conversation string, raw json.RawMessage) *resource {
	v, err := parseJSON(string(raw))
	if err != nil {
		return nil
	}
	n := &resource{id: v.get("id").s, kind: "item", parent: conversation}
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

func writeItem(n *resource) json.RawMessage {
	b := []byte{'{'}
	add := func(name string, v any) { b = append(appendJSON(append(appendString(b, name), ':'), v), ',') }
	for _, m := range n.body.obj {
		if m.name == "content" && m.v.kind == text {
			add(m.name, json.RawMessage(fill(`[{"type":"input_text","text":$}]`, m.v.s)))
			continue
		}
		add(m.name, m.v)
	}
	if !n.body.get("type").given() {
		add("type", "message")
	}
	b[len(b)-1] = '}'
	return b
}

// createItems serves POST /conversations/{id}/items.
func createItems(x *exchange) *apiError {
	conversation, e := collections()["item"].begin(x, false)
	if e != nil {
		return e
	}
	v, e := collections()["item"].body(x, parseRules("items!!:a<20"))
	if e != nil {
		return e
	}
	row, done, e := begin(x, "", v.s)
	if done {
		return e
	}
	var rows []json.RawMessage
	var ids []string
	for _, item := range v.get("items").arr {
		n := keepItem(x, conversation, item.source("{}"))
		ids, rows = append(ids, n.id), append(rows, writeItem(n))
	}
	x.plain(row, fill(`{"object":"list","data":$,"first_id":$,"last_id":$,"has_more":false}`, list(rows), ids[0], ids[len(ids)-1]), Usage{})
	return nil
}
