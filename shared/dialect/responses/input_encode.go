package responses

import (
	"slices"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// input writes the conversation as items.
func (e *requestEncoder) input() error {
	e.recall()
	e.b = append(e.b, `,"input":[`...)
	list := len(e.b)
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		var err error
		switch m.Role {
		case chat.Assistant:
			err = e.assistant(m, list)
		case chat.ToolRole:
			err = e.results(m, list)
		default:
			err = e.message(m, list)
		}
		if err != nil {
			return err
		}
	}
	if len(e.b) == list {
		return fault.Invalid("messages", "messages must contain at least one message with content")
	}
	e.b = append(e.b, ']')
	return nil
}

// next begins an item of the list that starts at list.
func (e *requestEncoder) next(list int) {
	if len(e.b) > list {
		e.b = append(e.b, ',')
	}
}

// path is where part p of m is in the client's body.
func path(m *chat.Message, p *chat.Part) string {
	switch {
	case m.At < 0:
		return indexed("system", p.At)
	case p.Kind == chat.Call:
		return indexed("messages", m.At) + "." + indexed("tool_calls", p.At)
	}
	return indexed("messages", m.At) + "." + indexed("content", p.At)
}

// message writes a message of anyone but the assistant.
func (e *requestEncoder) message(m *chat.Message, list int) error {
	if len(m.Parts) == 0 {
		return nil
	}
	start := len(e.b)
	e.next(list)
	role := m.Role.String()
	if m.Role != chat.User && e.t.SystemRole != "" {
		role = e.t.SystemRole
	}
	if m.Name != "" {
		e.loss.Add(indexed("messages", m.At)+".name", notTaken)
	}
	e.b = append(e.b, `{"role":"`+role+`","content":`...)
	if p := &m.Parts[0]; len(m.Parts) == 1 && p.Kind == chat.Text && (p.Cache == chat.NoCache || !e.t.Breakpoints) {
		e.dropMarker(m, &m.Parts[0])
		e.b = wire.AppendJSONString(e.b, m.Parts[0].Text)
		e.b = append(e.b, '}')
		return nil
	}
	n, err := e.parts(m, m.Parts, func(p *chat.Part) string { return path(m, p) })
	if err != nil {
		return err
	}
	if n == 0 {
		e.b = e.b[:start]
		return nil
	}
	e.b = append(e.b, '}')
	return nil
}

func (e *requestEncoder) dropMarker(m *chat.Message, p *chat.Part) {
	if p.Cache != chat.NoCache {
		e.loss.Add(path(m, p)+".cache_control", "the provider caches on its own")
	}
}

// marker writes a cache marker into the part that has just been written, or reports it.
func (e *requestEncoder) marker(m *chat.Message, p *chat.Part) {
	if p.Cache == chat.NoCache || !e.t.Breakpoints || !openai.TakesBreakpoint(m, p) {
		e.dropMarker(m, p)
		return
	}
	e.b = e.breakpoints.Append(e.b[:len(e.b)-1], p.Cache, e.loss, path(m, p))
	e.b = append(e.b, '}')
}

// parts writes a list of content parts and gives their number.
func (e *requestEncoder) parts(m *chat.Message, parts []chat.Part, at func(*chat.Part) string) (int, error) {
	e.b = append(e.b, '[')
	n := 0
	for i := range parts {
		p := &parts[i]
		before := len(e.b)
		if n > 0 {
			e.b = append(e.b, ',')
		}
		ok, err := e.part(p, at)
		if err != nil {
			return n, err
		}
		if !ok {
			e.b = e.b[:before]
			continue
		}
		e.marker(m, p)
		n++
	}
	e.b = append(e.b, ']')
	return n, nil
}

// part writes one content part; false for one that is reported as lost.
func (e *requestEncoder) part(p *chat.Part, at func(*chat.Part) string) (bool, error) {
	switch p.Kind {
	case chat.Text, chat.Refusal:
		e.b = append(e.b, `{"type":"input_text","text":`...)
		e.b = append(wire.AppendJSONString(e.b, p.Text), '}')
	case chat.Image:
		return true, e.image(p, at(p))
	case chat.Document:
		return true, e.document(p, at(p))
	case chat.Audio:
		return false, fault.Invalid(at(p), "%s is audio, which this provider does not accept", at(p))
	default:
		e.loss.Add(at(p), notTaken)
		return false, nil
	}
	return true, nil
}

func (e *requestEncoder) image(p *chat.Part, at string) error {
	m := p.Media
	if e.t.NoImages {
		return fault.Invalid(at, "%s is an image, which this model does not accept", at)
	}
	e.b = append(e.b, `{"type":"input_image"`...)
	if m.FileID != "" {
		e.str("file_id", m.FileID)
	} else {
		e.key("image_url")
		e.b = openai.AppendURL(e.b, m)
	}
	detail := m.Detail
	if detail == "" {
		detail = "auto"
	}
	e.str("detail", detail)
	e.b = append(e.b, '}')
	return nil
}

// document writes a file. Text documents become text.
func (e *requestEncoder) document(p *chat.Part, at string) error {
	m := p.Media
	switch {
	case m.Plain:
		e.b = append(e.b, `{"type":"input_text","text":`...)
		e.b = append(wire.AppendJSONString(e.b, m.Data), '}')
		return nil
	case e.t.NoDocuments:
		return fault.Invalid(at, "%s is a document, which this model does not accept", at)
	}
	e.b = append(e.b, `{"type":"input_file"`...)
	switch {
	case m.FileID != "":
		e.str("file_id", m.FileID)
	case m.URL != "":
		e.str("file_url", m.URL)
	default:
		name := m.Name
		if name == "" {
			name = "document.pdf"
		}
		e.str("filename", name)
		e.key("file_data")
		e.b = openai.AppendURL(e.b, m)
	}
	e.b = append(e.b, '}')
	return nil
}

// maxRecalls bounds the tool calls that are looked up for one request.
const maxRecalls = 64

// recall looks up the stored reasoning of calls that the client sent without it, newest
// first.
func (e *requestEncoder) recall() {
	if e.r.LoadReasoning == nil {
		return
	}
	left := maxRecalls
	for i := len(e.r.Messages) - 1; i >= 0; i-- {
		m := &e.r.Messages[i]
		if m.Role != chat.Assistant || reasons(m) {
			continue
		}
		for j := range m.Parts {
			c := m.Parts[j].Call
			if c == nil {
				continue
			}
			if left--; left < 0 {
				return
			}
			if parts := e.r.LoadReasoning(c.ID); len(parts) > 0 {
				if e.recalled == nil {
					e.recalled = make(map[string][]chat.Part)
				}
				e.recalled[c.ID] = parts
			}
		}
	}
}

// reasons reports whether a message holds reasoning of this dialect.
func reasons(m *chat.Message) bool {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == chat.Reasoned {
			if _, _, ok := ownItem(p); ok {
				return true
			}
		}
	}
	return false
}

// assistant writes a turn of the assistant as items, in its order.
func (e *requestEncoder) assistant(m *chat.Message, list int) error {
	if m.Name != "" {
		e.loss.Add(indexed("messages", m.At)+".name", notTaken)
	}
	for i := 0; i < len(m.Parts); i++ {
		p := &m.Parts[i]
		switch p.Kind {
		case chat.Text, chat.Refusal:
			last := i
			for last+1 < len(m.Parts) && (m.Parts[last+1].Kind == chat.Text || m.Parts[last+1].Kind == chat.Refusal) {
				last++
			}
			e.encodeText(m, m.Parts[i:last+1], list)
			i = last
		case chat.Reasoned, chat.RedactedReasoned:
			if !e.reasoned(p, list) {
				e.loss.Add(path(m, p), "reasoning of another provider")
			}
		case chat.Call:
			for j := range e.recalled[p.Call.ID] {
				e.reasoned(&e.recalled[p.Call.ID][j], list)
			}
			e.dropMarker(m, p)
			if p.Call.ID == "" {
				return fault.Invalid(path(m, p)+".id", "%s.id must name the call", path(m, p))
			}
			e.call(p.Call, list)
		default:
			e.loss.Add(path(m, p), notTaken)
		}
	}
	return nil
}

// encodeText writes consecutive texts and refusals as one message.
func (e *requestEncoder) encodeText(m *chat.Message, parts []chat.Part, list int) {
	start, n := len(e.b), 0
	e.next(list)
	e.b = append(e.b, `{"type":"message","role":"assistant","content":[`...)
	for i := range parts {
		p := &parts[i]
		e.dropMarker(m, p)
		if p.Text == "" {
			continue
		}
		if n++; n > 1 {
			e.b = append(e.b, ',')
		}
		if p.Kind == chat.Refusal {
			e.b = append(e.b, `{"type":"refusal","refusal":`...)
		} else {
			e.b = append(e.b, `{"type":"output_text","text":`...)
		}
		e.b = append(wire.AppendJSONString(e.b, p.Text), '}')
	}
	e.b = append(e.b, `]}`...)
	if n == 0 {
		e.b = e.b[:start]
	}
}

// reasoned writes reasoning that a provider of this dialect has made; false for any other.
func (e *requestEncoder) reasoned(p *chat.Part, list int) bool {
	id, encrypted, ok := ownItem(p)
	if !ok {
		return false
	}
	e.next(list)
	e.b = append(e.b, `{"type":"reasoning"`...)
	if id != "" {
		e.str("id", id)
	}
	var raw []byte
	if p.Text != "" {
		raw = wire.AppendJSONString(nil, p.Text)
	}
	e.b = append(appendReasoning(e.b, raw, encrypted), '}')
	return true
}

func (e *requestEncoder) call(c *chat.ToolCall, list int) {
	args := c.Arguments
	if c.Custom {
		args = chat.WrapText(args)
	}
	if args == "" {
		args = "{}"
	}
	e.next(list)
	e.b = append(e.b, `{"type":"function_call","call_id":`...)
	e.b = wire.AppendJSONString(e.b, hosts.CallID(e.t.Provider, c.ID))
	e.str("name", chat.LegalName(c.Name, e.max))
	e.str("arguments", args)
	e.b = append(e.b, '}')
}

// results writes the results of tool calls, each as an item.
func (e *requestEncoder) results(m *chat.Message, list int) error {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != chat.Result {
			continue
		}
		r := p.Result
		if r.CallID == "" {
			at := indexed("messages", m.At) + ".tool_call_id"
			return fault.Invalid(at, "%s must name the tool call that it responds to", at)
		}
		e.dropMarker(m, p)
		e.dropIf(r.IsError, path(m, p)+".is_error")
		e.next(list)
		e.b = append(e.b, `{"type":"function_call_output","call_id":`...)
		e.b = wire.AppendJSONString(e.b, hosts.CallID(e.t.Provider, r.CallID))
		e.key("output")
		if whole, ok := onlyText(r.Parts); ok {
			e.b = append(wire.AppendJSONString(e.b, whole), '}')
			continue
		}
		inside := func(q *chat.Part) string {
			return path(m, p) + "." + indexed("content", slices.IndexFunc(r.Parts, func(o chat.Part) bool { return o.At == q.At }))
		}
		if _, err := e.parts(m, r.Parts, inside); err != nil {
			return err
		}
		e.b = append(e.b, '}')
	}
	return nil
}

func onlyText(parts []chat.Part) (string, bool) {
	for i := range parts {
		if parts[i].Kind != chat.Text {
			return "", false
		}
	}
	m := chat.Message{Parts: parts}
	return m.Text(), true
}
