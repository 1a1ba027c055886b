package responses

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// invalidResponse is the fault for a success that cannot be read.
func invalidResponse(cause error) *fault.Fault {
	f := fault.New(fault.InvalidProviderResponse, "", "The provider's answer is not a response object").WithCause(cause)
	f.Source = fault.SourceProvider
	return f
}

// ending holds the status fields of a response object.
type ending struct {
	status, reason string
	failure        []byte // error object; nil if none
	output         bool
}

// stop is the stop reason; native the provider's own word for it.
func (e *ending) stop(calls, refused bool) (stop chat.StopReason, native string) {
	switch e.status {
	case "completed", "":
		switch {
		case calls:
			return chat.StopToolCalls, "completed"
		case refused:
			return chat.StopFilter, "completed"
		}
		return chat.StopEnd, "completed"
	case "incomplete":
		switch e.reason {
		case "max_output_tokens", "max_tokens":
			return chat.StopLength, e.reason
		case "content_filter":
			return chat.StopFilter, e.reason
		case "":
			return chat.StopLength, "incomplete"
		}
		return chat.StopUnknown, e.reason
	}
	return chat.StopUnknown, e.status
}

// fault is the failure that a response object reports; nil when it is a response.
func (e *ending) fault() *fault.Fault {
	switch {
	case e.failure != nil:
		return failed(e.failure)
	case e.status == "failed" || e.status == "cancelled":
		return failed([]byte(`{"code":"server_error","message":"The response has ` + e.status + `"}`))
	}
	return nil
}

// failed makes the fault for the error object of a response or of an event.
func failed(raw []byte) *fault.Fault {
	f := openai.InBandError(raw)
	if p := chat.ProviderErrorOf(f); p != nil && requestFault(p.Code) {
		p.Status, f.StatusCode = 400, 400
	}
	return f
}

// requestFault reports whether the code of a failed response blames the request.
func requestFault(code string) bool {
	switch code {
	case "invalid_prompt", "empty_image_file", "failed_to_download_image", "unsupported_image_media_type":
		return true
	}
	return strings.HasPrefix(code, "image_") || strings.HasPrefix(code, "invalid_image") || strings.HasPrefix(code, "invalid_base64")
}

// member reads a status field of a response object.
func (e *ending) member(key []byte, d *wire.Decoder) bool {
	switch string(key) {
	case "status":
		e.status = optString(d)
	case "incomplete_details":
		if d.Kind() == wire.KindObject {
			for inner := range d.Object {
				if string(inner) == "reason" {
					e.reason = optString(d)
				}
			}
		}
	case "error":
		if k := d.Kind(); k == wire.KindObject || k == wire.KindString {
			e.failure = d.Raw()
		}
	default:
		return false
	}
	return true
}

// decodeResponse reads a response object.
func decodeResponse(body []byte) (*chat.Response, *fault.Fault) {
	d := wire.NewDecoder(body)
	r := &chat.Response{Choices: make([]chat.Choice, 1)}
	c := &r.Choices[0]
	var e ending
	var logprobs []byte
	h := newHosted()
	for key := range d.Object {
		if e.member(key, d) || string(key) != "service_tier" && h.member(key, d) {
			continue
		}
		switch string(key) {
		case "id":
			r.ID = optString(d)
		case "model":
			r.Model = optString(d)
		case "created_at":
			if d.Kind() == wire.KindNumber {
				r.Created = int64(d.Float())
			}
		case "service_tier":
			r.ServiceTier = optString(d)
		case "output":
			if d.Kind() == wire.KindArray {
				e.output = true
				probe := *d
				h.items(probe.Raw())
				for range d.Array {
					decodeItem(d, c, &logprobs)
				}
			}
		case "usage":
			if d.Kind() == wire.KindObject {
				r.ReportedTotal = openai.ReadUsage(d, &r.Usage)
			}
		}
	}
	err := d.End()
	if err == nil {
		if f := e.fault(); f != nil {
			return nil, f
		}
	}
	if err != nil || !e.output {
		return nil, invalidResponse(err)
	}
	if logprobs != nil {
		c.Logprobs = append(append([]byte(`{"content":[`), logprobs...), `],"refusal":null}`...)
	}
	called, refused := false, false
	for i := range c.Parts {
		called = called || c.Parts[i].Kind == chat.Call
		refused = refused || c.Parts[i].Kind == chat.Refusal
	}
	c.Stop, c.Native = e.stop(called, refused)
	h.tier = r.ServiceTier
	h.bill(&r.Usage, &r.PriceFacts)
	return r, nil
}

// decodeItem reads one output item into the parts of c.
func decodeItem(d *wire.Decoder, c *chat.Choice, logprobs *[]byte) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	start := *d
	var it outputItem
	it.read(d)
	switch it.kind {
	case "message":
		for _, p := range it.parts {
			if p.Text != "" {
				c.Parts = append(c.Parts, p)
			}
		}
		if len(it.logprobs) > 0 {
			if *logprobs != nil {
				*logprobs = append(*logprobs, ',')
			}
			*logprobs = append(*logprobs, it.logprobs...)
		}
	case "function_call", "custom_tool_call":
		c.Parts = append(c.Parts, chat.Part{Kind: chat.Call, Call: it.call()})
	case "reasoning":
		if p := it.reasoned(); p.Text != "" || p.Signature != "" {
			c.Parts = append(c.Parts, p)
		}
	default:
		probe := start
		c.Parts = append(c.Parts, chat.Part{Kind: chat.Foreign, Type: it.kind, Origin: name, Raw: clone(probe.Raw())})
	}
}

// outputItem is an item of a response.
type outputItem struct {
	kind, id, callID, tool, arguments, input, encrypted string
	parts                                               []chat.Part
	logprobs                                            []byte // elements with commas
	summary, thoughts                                   []string
}

func (it *outputItem) read(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "type":
			it.kind = optString(d)
		case "id":
			it.id = optString(d)
		case "call_id":
			it.callID = optString(d)
		case "name":
			it.tool = optString(d)
		case "arguments":
			it.arguments = text(d)
		case "input":
			it.input = text(d)
		case "encrypted_content":
			it.encrypted = optString(d)
		case "summary":
			it.summary = texts(d)
		case "content":
			if d.Kind() == wire.KindArray {
				for range d.Array {
					it.content(d)
				}
			}
		}
	}
}

func (it *outputItem) content(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		return
	}
	p := chat.Part{Kind: chat.Text}
	thought := false
	for key := range d.Object {
		switch string(key) {
		case "type":
			switch optString(d) {
			case "refusal":
				p.Kind = chat.Refusal
			case "reasoning_text":
				thought = true
			}
		case "text", "refusal":
			p.Text = optString(d)
		case "annotations":
			if d.Kind() == wire.KindArray {
				if raw := d.Raw(); len(raw) > 2 {
					p.Citations = clone(raw)
				}
			}
		case "logprobs":
			if d.Kind() == wire.KindArray {
				if raw := d.Raw(); len(raw) > 2 {
					it.logprobs = append(it.logprobs, raw[1:len(raw)-1]...)
				}
			}
		}
	}
	if thought {
		it.thoughts = append(it.thoughts, p.Text)
		return
	}
	it.parts = append(it.parts, p)
}

func (it *outputItem) call() *chat.ToolCall {
	c := &chat.ToolCall{ID: it.callID, Name: it.tool, Arguments: it.arguments}
	if it.kind == "custom_tool_call" {
		c.Arguments = chat.WrapText(it.input)
	}
	if c.ID == "" {
		c.ID = it.id
	}
	if strings.TrimSpace(c.Arguments) == "" {
		c.Arguments = "{}"
	}
	return c
}

func (it *outputItem) reasoned() chat.Part {
	summary := it.summary
	if len(summary) == 0 {
		summary = it.thoughts
	}
	return chat.Part{Kind: chat.Reasoned, Origin: name, Text: strings.Join(summary, summaryBreak), Signature: signItem(it.id, it.encrypted)}
}

// meterPlain reads what accounting need of a plain response that is forwarded.
func meterPlain(body []byte) chat.Meter {
	m := chat.Meter{Complete: true, Started: true}
	var e ending
	h := newHosted()
	var d wire.Decoder
	d.Reset(body)
	for key := range d.Object {
		if e.member(key, &d) || h.member(key, &d) {
			continue
		}
		switch string(key) {
		case "id":
			m.ID = optString(&d)
		case "model":
			m.Model = optString(&d)
		case "output":
			raw := d.Raw()
			m.OutputBytes = int64(len(raw))
			h.items(raw)
		case "usage":
			if d.Kind() == wire.KindObject {
				m.ReportedTotal = openai.ReadUsage(&d, &m.Usage)
			}
		}
	}
	if f := e.fault(); f != nil {
		m.Err, m.Complete, m.Started = f, false, false
	}
	_, m.Finish = e.stop(false, false)
	if !m.Usage.HasOutput() && m.Err == nil {
		if r, f := decodeResponse(body); f == nil {
			m.OutputBytes = r.Meter().OutputBytes
		}
	}
	h.bill(&m.Usage, &m.PriceFacts)
	m.Items = h.sizes
	return m
}
