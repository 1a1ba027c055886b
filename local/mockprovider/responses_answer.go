package mockprovider

import (
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
	if e := x.settle(q.seed); e != nil {
		return e
	}
	id := x.newID("resp_", q.seed)
	r := &responseAnswer{q: q, x: x, v: v, id: id, core: strings.TrimPrefix(id, "resp_"), created: x.s.opts.Now().Unix(), answer: q.answer(0)}
	x.row, x.hasRow = x.s.bill.begin(x.path, x.model, r.id, q.stream), true
	if done, e := x.misbehave(); done {
		return e
	}
	u := Usage{Input: q.prompt}
	u.Output, u.Reasoning = r.answer.generated()
	if q.st.cached > 0 {
		u.CacheRead = min(int64(q.st.cached), u.Input)
		u.Input -= u.CacheRead
	}
	r.usage = u
	r.makeItems()
	if s := v.get("store"); s.kind != boolean || s.yes {
		keep(x, &thing{id: r.id, kind: "response", body: v, content: r.object(r.status(), r.list())})
	}
	r.continued()
	if q.stream {
		r.stream()
		return nil
	}
	x.plain(r.id, r.object(r.status(), r.list()), u)
	return nil
}

// responseAnswer writes a response, complete or in events.
type responseAnswer struct {
	q        *responseRequest
	x        *exchange
	v        value // the request; its settings are repeated
	id, core string
	created  int64
	answer   answer
	usage    Usage
	items    []responseItem
	seq      int
	buf      []byte
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

// makeItems turns the answer into output items: reasoning, message, calls.
func (r *responseAnswer) makeItems() {
	a := &r.answer
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
func (r *responseAnswer) status() string {
	if r.reason() != "" {
		return "incomplete"
	}
	return "completed"
}

// reason is why the answer is incomplete.
func (r *responseAnswer) reason() string {
	switch {
	case r.q.st.finish != "" && r.q.st.finish != "completed":
		return r.q.st.finish
	case r.answer.stop == stopLength:
		return "max_output_tokens"
	}
	return ""
}

// object writes the response object.
func (r *responseAnswer) object(status string, output []byte) []byte {
	b := appendString(append(make([]byte, 0, 2048), `{"id":`...), r.id)
	b = strconv.AppendInt(append(b, `,"object":"response","created_at":`...), r.created, 10)
	b = appendString(append(b, `,"status":`...), status)
	b = append(b, `,"background":false,"error":`...)
	if status == "failed" {
		b = append(b, `{"code":"server_error","message":"The server had an error while processing your request."}`...)
	} else {
		b = append(b, `null`...)
	}
	b = append(b, `,"incomplete_details":`...)
	if status == "incomplete" {
		b = append(appendString(append(b, `{"reason":`...), r.reason()), '}')
	} else {
		b = append(b, `null`...)
	}
	b = r.echo(b, `,"instructions":`, "instructions", `null`)
	b = r.echo(b, `,"max_output_tokens":`, "max_output_tokens", `null`)
	b = appendString(append(b, `,"model":`...), r.x.model)
	b = append(append(append(b, `,"output":[`...), output...), ']')
	b = r.echo(b, `,"parallel_tool_calls":`, "parallel_tool_calls", `true`)
	b = r.echo(b, `,"previous_response_id":`, "previous_response_id", `null`)
	b = r.echo(b, `,"reasoning":`, "reasoning", `{"effort":null,"summary":null}`)
	b = appendString(append(b, `,"service_tier":`...), r.q.tier)
	b = r.echo(b, `,"store":`, "store", `true`)
	b = r.echo(b, `,"temperature":`, "temperature", `1.0`)
	b = r.echo(b, `,"text":`, "text", `{"format":{"type":"text"}}`)
	b = r.echo(b, `,"tool_choice":`, "tool_choice", `"auto"`)
	b = r.echo(b, `,"tools":`, "tools", `[]`)
	b = r.echo(b, `,"top_p":`, "top_p", `1.0`)
	b = r.echo(b, `,"truncation":`, "truncation", `"disabled"`)
	b = append(b, `,"usage":`...)
	if status == "in_progress" || status == "failed" || r.q.st.noUsage {
		b = append(b, `null`...)
	} else {
		b = appendResponseUsage(b, r.usage)
	}
	b = r.echo(b, `,"user":`, "user", `null`)
	b = r.echo(b, `,"metadata":`, "metadata", `{}`)
	return append(b, '}')
}

// echo writes a setting of the request, without line ends.
func (r *responseAnswer) echo(b []byte, member, name, none string) []byte {
	b = append(b, member...)
	f := r.v.get(name)
	switch f.kind {
	case absent, null:
		return append(b, none...)
	case text:
		return appendString(b, f.s)
	case boolean:
		return strconv.AppendBool(b, f.yes)
	}
	return append(b, strings.NewReplacer("\n", " ", "\r", " ").Replace(f.s)...)
}

func appendResponseUsage(b []byte, u Usage) []byte {
	out := u.Output + u.Reasoning
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), u.prompt(), 10)
	b = strconv.AppendInt(append(b, `,"input_tokens_details":{"cached_tokens":`...), u.CacheRead, 10)
	b = strconv.AppendInt(append(b, `},"output_tokens":`...), out, 10)
	b = strconv.AppendInt(append(b, `,"output_tokens_details":{"reasoning_tokens":`...), u.Reasoning, 10)
	b = strconv.AppendInt(append(b, `},"total_tokens":`...), u.prompt()+out, 10)
	return append(b, '}')
}

// list writes what the output contains.
func (r *responseAnswer) list() []byte {
	var b []byte
	for i := range r.items {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.item(b, &r.items[i], true)
	}
	return b
}

// item writes an item, complete or in its initial form.
func (r *responseAnswer) item(b []byte, it *responseItem, whole bool) []byte {
	said, status := "", "in_progress"
	if whole {
		said, status = strings.Join(it.pieces, ""), "completed"
		if it.incomplete {
			status = "incomplete"
		}
	}
	b = appendString(append(b, `{"id":`...), it.id)
	b = appendString(append(b, `,"type":`...), it.typ)
	if it.typ == "reasoning" {
		b = append(b, `,"summary":[`...)
		if said != "" {
			b = append(appendString(append(b, `{"type":"summary_text","text":`...), said), '}')
		}
		b = append(b, ']')
		if it.encrypted != "" {
			b = appendString(append(b, `,"encrypted_content":`...), it.encrypted)
		}
		return append(b, '}')
	}
	b = appendString(append(b, `,"status":`...), status)
	switch it.typ {
	case "message":
		b = append(b, `,"content":[`...)
		if whole {
			b = r.part(b, it, said)
		}
		b = append(b, `],"role":"assistant"`...)
	case "function_call":
		b = appendString(append(b, `,"arguments":`...), said)
	default:
		b = appendString(append(b, `,"input":`...), said)
	}
	if it.callID != "" {
		b = appendString(append(b, `,"call_id":`...), it.callID)
		b = appendString(append(b, `,"name":`...), it.name)
	}
	return append(b, '}')
}

// part writes the content part of a message.
func (r *responseAnswer) part(b []byte, it *responseItem, said string) []byte {
	if it.refusal {
		return append(appendString(append(b, `{"type":"refusal","refusal":`...), said), '}')
	}
	b = append(b, `{"type":"output_text","annotations":[],"logprobs":[`...)
	if r.q.logprobs && said != "" {
		b = r.logprobs(b, it.pieces)
	}
	return append(appendString(append(b, `],"text":`...), said), '}')
}

func (r *responseAnswer) logprobs(b []byte, pieces []string) []byte {
	for i, p := range pieces {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendLogprob(b, p, 1), `,"top_logprobs":[]}`...)
	}
	return b
}

// emit sends one event; members is the rest of its object. It reports whether the stream
// continues.
func (r *responseAnswer) emit(s *stream, typ, members string) bool {
	if s.stopped {
		return false
	}
	if st := r.q.st; st.errorEvent != "" && max(0, st.errorAfter) == s.events && !s.gone {
		r.fail(s)
		return false
	}
	return s.event(typ, r.frame(typ, members))
}

func (r *responseAnswer) frame(typ, members string) []byte {
	b := appendString(append(r.buf[:0], `{"type":`...), typ)
	b = strconv.AppendInt(append(b, `,"sequence_number":`...), int64(r.seq), 10)
	r.seq++
	r.buf = append(append(b, members...), '}')
	return r.buf
}

// fail ends a stream with an error event; for error-event=failed it ends it with a response
// that has failed.
func (r *responseAnswer) fail(s *stream) {
	st := r.q.st
	s.x.row.close(200, s.sofar(), s.x.gone(), "error-event")
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

// stream sends the events of the answer.
func (r *responseAnswer) stream() {
	s := r.x.startStream(r.id, r.usage)
	running := `,"response":` + string(r.object("in_progress", nil))
	if !r.emit(s, "response.created", running) || !r.emit(s, "response.in_progress", running) {
		return
	}
	for i := range r.items {
		if !r.streamItem(s, i) {
			return
		}
	}
	if st := r.q.st; st.errorEvent != "" && max(0, st.errorAfter) == s.events && !s.gone {
		r.fail(s)
		return
	}
	s.finish()
	typ := "response." + r.status()
	s.last(typ, r.frame(typ, `,"response":`+string(r.object(r.status(), r.list()))))
}

// streamItem sends the events of one item.
func (r *responseAnswer) streamItem(s *stream, index int) bool {
	it := &r.items[index]
	n := strconv.Itoa(index)
	of := `,"item_id":` + quoted(it.id) + `,"output_index":` + n
	item := func(whole bool) string { return `,"output_index":` + n + `,"item":` + string(r.item(nil, it, whole)) }
	if !r.emit(s, "response.output_item.added", item(false)) {
		return false
	}
	said := strings.Join(it.pieces, "")
	ok := true
	switch it.typ {
	case "reasoning":
		s.spend(0, it.hidden)
		if said != "" {
			of += `,"summary_index":0`
			ok = r.emit(s, "response.reasoning_summary_part.added", of+`,"part":{"type":"summary_text","text":""}`) &&
				r.pieces(s, it, "response.reasoning_summary_text.delta", of, false, "") &&
				r.emit(s, "response.reasoning_summary_text.done", of+`,"text":`+quoted(said)) &&
				r.emit(s, "response.reasoning_summary_part.done", of+`,"part":{"type":"summary_text","text":`+quoted(said)+`}`)
		}
	case "message":
		of += `,"content_index":0`
		kind, whole, more := "output_text", `,"text":`, `,"logprobs":[]`
		if it.refusal {
			kind, whole, more = "refusal", `,"refusal":`, ""
		}
		ok = r.emit(s, "response.content_part.added", of+`,"part":`+string(r.part(nil, it, ""))) &&
			r.pieces(s, it, "response."+kind+".delta", of, true, more) &&
			r.emit(s, "response."+kind+".done", of+whole+quoted(said)+more) &&
			r.emit(s, "response.content_part.done", of+`,"part":`+string(r.part(nil, it, said)))
	default:
		kind, whole := "function_call_arguments", `,"arguments":`
		if it.typ == "custom_tool_call" {
			kind, whole = "custom_tool_call_input", `,"input":`
		}
		s.spend(1, 0)
		ok = r.pieces(s, it, "response."+kind+".delta", of, true, "") && r.emit(s, "response."+kind+".done", of+whole+quoted(said))
	}
	return ok && r.emit(s, "response.output_item.done", item(true))
}

// pieces sends the deltas of an item. paid: the pieces are output tokens.
func (r *responseAnswer) pieces(s *stream, it *responseItem, typ, of string, paid bool, more string) bool {
	for _, p := range it.pieces {
		if paid {
			s.spend(1, 0)
		}
		own := more
		if r.q.logprobs && own != "" {
			own = `,"logprobs":[` + string(r.logprobs(nil, []string{p})) + `]`
		}
		if !r.emit(s, typ, of+`,"delta":`+quoted(p)+own) {
			return false
		}
	}
	return true
}
