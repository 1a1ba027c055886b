package mockprovider

import (
	"encoding/json"
	"strconv"
	"strings"
)

// response serves POST /responses.
func response(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkResponse(x, v)
	if e != nil {
		return e
	}
	id, done, e := x.begin("resp_", q.seed, q.stream)
	if done {
		return e
	}
	r := &responsesResponse{q: q, x: x, v: v, id: id, core: strings.TrimPrefix(id, "resp_"), created: x.s.opts.Now().Unix(), response: q.respond(0)}
	u := Usage{Input: q.prompt}
	u.Output, u.Reasoning = r.response.generated()
	if q.st.cached > 0 {
		u.CacheRead = min(int64(q.st.cached), u.Input)
		u.Input -= u.CacheRead
	}
	r.usage = u
	r.makeItems()
	if s := v.get("store"); s.kind != boolean || s.yes {
		keep(x, &resource{id: r.id, kind: "response", body: v, content: r.object(r.status(), r.list())})
	}
	r.continued()
	if q.stream {
		r.stream()
		return nil
	}
	x.plain(r.id, r.object(r.status(), r.list()), u)
	return nil
}

// responsesResponse writes a response, complete or in events.
type responsesResponse struct {
	q        *responseRequest
	x        *exchange
	v        value // the request; its settings are repeated
	id, core string
	created  int64
	response modelOutput
	usage    Usage
	items    []responseItem
	seq      int // number of the next event
}

// responseItem is one output item: head and tail surround the streamed part.
type responseItem struct {
	typ, id      string
	callID, name string
	pieces       []string
	encrypted    string
	refusal      bool
	hidden       int64 // tokens that are not shown
	incomplete   bool
}

// makeItems turns the response into output items: reasoning, message, calls.
func (r *responsesResponse) makeItems() {
	a := &r.response
	if n := int64(len(a.thinking)) + a.hidden; n > 0 {
		it := responseItem{typ: "reasoning", id: "rs_" + r.core, hidden: n}
		if r.q.summary || len(a.thinking) > 0 {
			it.pieces = a.thinking
			if len(it.pieces) == 0 {
				it.pieces = words(r.q.seed, int(a.hidden))
			}
		}
		if r.q.encrypted {
			it.encrypted = seal(signReasoning, it.id)
		}
		r.items = append(r.items, it)
	}
	if len(a.text) > 0 || len(a.calls) == 0 {
		r.items = append(r.items, responseItem{typ: "message", id: "msg_" + r.core, pieces: a.text, refusal: a.stop == stopRefused, incomplete: r.status() != "completed"})
	}
	for i := range a.calls {
		c := &a.calls[i]
		n := strconv.Itoa(i)
		it := responseItem{typ: "function_call", id: "fc_" + r.core + n, callID: "call_" + r.core + "t" + n, name: c.name, pieces: c.pieces}
		if r.q.custom[c.name] {
			it.typ, it.id = "custom_tool_call", "ctc_"+r.core+n
			it.pieces = split("run " + c.name + " \"now\"\nend")
		}
		it.incomplete = r.status() != "completed" && i == len(a.calls)-1
		r.items = append(r.items, it)
	}
}

// status is completed or incomplete.
func (r *responsesResponse) status() string {
	if r.reason() != "" {
		return "incomplete"
	}
	return "completed"
}

// reason is why the response is incomplete.
func (r *responsesResponse) reason() string {
	switch {
	case r.q.st.finish != "" && r.q.st.finish != "completed":
		return r.q.st.finish
	case r.response.stop == stopLength:
		return "max_output_tokens"
	}
	return ""
}

// object writes the response object; it repeats settings of the request.
func (r *responsesResponse) object(status string, output []byte) []byte {
	var failure, incomplete, usage any
	switch status {
	case "failed":
		failure = json.RawMessage(`{"code":"server_error","message":"The server had an error while processing your request."}`)
	case "incomplete":
		incomplete = json.RawMessage(fill(`{"reason":$}`, r.reason()))
	}
	if status != "in_progress" && status != "failed" && !r.q.st.noUsage {
		usage = json.RawMessage(appendResponseUsage(nil, r.usage))
	}
	echo := func(name, none string) json.RawMessage { return r.v.get(name).source(none) }
	return fill(`{"id":$,"object":"response","created_at":$,"status":$,"background":false,"error":$,"incomplete_details":$,"instructions":$,"max_output_tokens":$,"model":$,"output":[$],`+
		`"parallel_tool_calls":$,"previous_response_id":$,"reasoning":$,"service_tier":$,"store":$,"temperature":$,"text":$,"tool_choice":$,"tools":$,"top_p":$,"truncation":$,"usage":$,"user":$,"metadata":$}`,
		r.id, r.created, status, failure, incomplete, echo("instructions", "null"), echo("max_output_tokens", "null"), r.x.model, output,
		echo("parallel_tool_calls", "true"), echo("previous_response_id", "null"), echo("reasoning", `{"effort":null,"summary":null}`), "default", echo("store", "true"), echo("temperature", "1.0"),
		echo("text", `{"format":{"type":"text"}}`), echo("tool_choice", `"auto"`), echo("tools", "[]"), echo("top_p", "1.0"), echo("truncation", `"disabled"`), usage, echo("user", "null"), echo("metadata", "{}"))
}

func appendResponseUsage(b []byte, u Usage) []byte {
	out := u.Output + u.Reasoning
	return append(b, fill(`{"input_tokens":$,"input_tokens_details":{"cached_tokens":$},"output_tokens":$,"output_tokens_details":{"reasoning_tokens":$},"total_tokens":$}`, u.prompt(), u.CacheRead, out, u.Reasoning, u.prompt()+out)...)
}

// list writes what the output contains.
func (r *responsesResponse) list() []byte {
	var items []json.RawMessage
	for i := range r.items {
		items = append(items, r.item(&r.items[i], true))
	}
	b := list(items)
	return b[1 : len(b)-1]
}

// item writes an item, complete or in its initial form.
func (r *responsesResponse) item(it *responseItem, whole bool) []byte {
	content, status := "", "in_progress"
	if whole {
		content, status = strings.Join(it.pieces, ""), "completed"
		if it.incomplete {
			status = "incomplete"
		}
	}
	b := fill(`{"id":$,"type":$`, it.id, it.typ)
	if it.typ == "reasoning" {
		var summary []json.RawMessage
		if content != "" {
			summary = append(summary, fill(`{"type":"summary_text","text":$}`, content))
		}
		if b = append(b, fill(`,"summary":$`, list(summary))...); it.encrypted != "" {
			b = append(b, fill(`,"encrypted_content":$`, it.encrypted)...)
		}
		return append(b, '}')
	}
	b = append(b, fill(`,"status":$`, status)...)
	switch it.typ {
	case "message":
		var parts []json.RawMessage
		if whole {
			parts = append(parts, r.part(it, content))
		}
		b = append(b, fill(`,"content":$,"role":"assistant"`, list(parts))...)
	case "function_call":
		b = append(b, fill(`,"arguments":$`, content)...)
	default:
		b = append(b, fill(`,"input":$`, content)...)
	}
	if it.callID != "" {
		b = append(b, fill(`,"call_id":$,"name":$`, it.callID, it.name)...)
	}
	return append(b, '}')
}

// part writes the content part of a message.
func (r *responsesResponse) part(it *responseItem, content string) []byte {
	if it.refusal {
		return fill(`{"type":"refusal","refusal":$}`, content)
	}
	var logprobs []json.RawMessage
	if r.q.logprobs && content != "" {
		logprobs = responseLogprobs(it.pieces)
	}
	return fill(`{"type":"output_text","annotations":[],"logprobs":$,"text":$}`, list(logprobs), content)
}

func responseLogprobs(pieces []string) (out []json.RawMessage) {
	for _, p := range pieces {
		out = append(out, append(logprobOf(p, 1), `,"top_logprobs":[]}`...))
	}
	return out
}

// emit sends one event; fields is the rest of its object.
func (r *responsesResponse) emit(s *stream, typ, members string) {
	if st := r.q.st; st.errorEvent != "" && max(0, st.errorAfter) == s.events && !s.gone && !s.stopped {
		r.fail(s)
	}
	s.event(typ, r.frame(typ, members))
}

func (r *responsesResponse) frame(typ, members string) []byte {
	r.seq++
	return fill(`{"type":$,"sequence_number":$$}`, typ, r.seq-1, json.RawMessage(members))
}

// fail ends a stream with an error event; for error-event=failed it ends it with a response
// that has failed.
func (r *responsesResponse) fail(s *stream) {
	st := r.q.st
	s.x.row.close(200, s.usageSoFar(), s.x.gone(), "error-event")
	message := st.message
	if message == "" {
		message = "The server had an error while processing your request."
	}
	typ, members := "error", `,"code":`+quoted(st.errorEvent)+`,"message":`+quoted(message)+`,"param":null`
	if st.errorEvent == "failed" {
		typ, members = "response.failed", `,"response":`+string(r.object("failed", nil))
	}
	s.buf = append(append(append(s.buf, "event: "...), typ...), "\ndata: "...)
	s.buf = append(append(s.buf, r.frame(typ, members)...), "\n\n"...)
	s.send()
	s.end()
	s.stopped = true
}

// stream sends the events of the response.
func (r *responsesResponse) stream() {
	s := r.x.startStream(r.id, r.usage)
	running := `,"response":` + string(r.object("in_progress", nil))
	r.emit(s, "response.created", running)
	r.emit(s, "response.in_progress", running)
	for i := range r.items {
		r.streamItem(s, i)
	}
	if st := r.q.st; st.errorEvent != "" && max(0, st.errorAfter) == s.events && !s.gone && !s.stopped {
		r.fail(s)
	}
	s.finish()
	typ := "response." + r.status()
	s.last(typ, r.frame(typ, `,"response":`+string(r.object(r.status(), r.list()))))
}

// streamItem sends the events of one item.
func (r *responsesResponse) streamItem(s *stream, index int) {
	it := &r.items[index]
	n, content := strconv.Itoa(index), strings.Join(it.pieces, "")
	of := `,"item_id":` + quoted(it.id) + `,"output_index":` + n
	item := func(whole bool) string { return `,"output_index":` + n + `,"item":` + string(r.item(it, whole)) }
	r.emit(s, "response.output_item.added", item(false))
	switch {
	case it.typ == "reasoning" && content == "":
		s.spend(0, it.hidden)
	case it.typ == "reasoning":
		s.spend(0, it.hidden)
		of += `,"summary_index":0`
		part := func(text string) string { return of + `,"part":{"type":"summary_text","text":` + quoted(text) + `}` }
		r.emit(s, "response.reasoning_summary_part.added", part(""))
		r.pieces(s, it, "response.reasoning_summary_text", of, "text", "")
		r.emit(s, "response.reasoning_summary_part.done", part(content))
	case it.typ == "message":
		of += `,"content_index":0`
		part := func(text string) string { return of + `,"part":` + string(r.part(it, text)) }
		r.emit(s, "response.content_part.added", part(""))
		if it.refusal {
			r.pieces(s, it, "response.refusal", of, "refusal", "")
		} else {
			r.pieces(s, it, "response.output_text", of, "text", `,"logprobs":[]`)
		}
		r.emit(s, "response.content_part.done", part(content))
	case it.typ == "custom_tool_call":
		s.spend(1, 0)
		r.pieces(s, it, "response.custom_tool_call_input", of, "input", "")
	default:
		s.spend(1, 0)
		r.pieces(s, it, "response.function_call_arguments", of, "arguments", "")
	}
	r.emit(s, "response.output_item.done", item(true))
}

// pieces sends the deltas of an item and their end, which repeats all in a field.
func (r *responsesResponse) pieces(s *stream, it *responseItem, typ, of, field, more string) {
	for _, p := range it.pieces {
		if it.typ != "reasoning" {
			s.spend(1, 0)
		}
		own := more
		if r.q.logprobs && own != "" {
			own = `,"logprobs":` + string(list(responseLogprobs([]string{p})))
		}
		r.emit(s, typ+".delta", of+`,"delta":`+quoted(p)+own)
	}
	r.emit(s, typ+".done", of+`,"`+field+`":`+quoted(strings.Join(it.pieces, ""))+more)
}
