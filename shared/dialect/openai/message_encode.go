package openai

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// messages writes the conversation. A tool message cannot hold images, so images from tools
// follow in one message of the user.
func (e *requestEncoder) messages() error {
	first := true
	next := func() {
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
	}
	if e.r.UnboundJSON {
		next()
		e.b = append(e.b, `{"role":"system","content":`...)
		e.b = wire.AppendJSONString(e.b, chat.SchemaInstruction(e.r.Format.Schema))
		e.b = append(e.b, '}')
	}
	var media []chat.Part
	ms := e.r.Messages
	for i := range ms {
		m := &ms[i]
		if m.Role == chat.ToolRole {
			for j := range m.Parts {
				if p := &m.Parts[j]; p.Kind == chat.Result {
					next()
					media = e.result(m, p, media)
				}
			}
			if len(media) > 0 && (i+1 == len(ms) || ms[i+1].Role != chat.ToolRole) {
				next()
				e.b = append(e.b, `{"role":"user","content":`...)
				if err := e.parts(&chat.Message{Role: chat.User, Parts: media, At: m.At}); err != nil {
					return err
				}
				e.b = append(e.b, '}')
				media = nil
			}
			continue
		}
		if len(m.Parts) == 0 && m.Role != chat.Assistant {
			continue
		}
		next()
		if err := e.message(m); err != nil {
			return err
		}
	}
	if first || e.r.UnboundJSON && len(ms) == 0 {
		return fault.Invalid("messages", "messages must contain at least one message with content")
	}
	return nil
}

func (e *requestEncoder) role(r chat.Role) string {
	if (r == chat.System || r == chat.Developer) && e.t.SystemRole != "" {
		return e.t.SystemRole
	}
	return r.String()
}

func (e *requestEncoder) message(m *chat.Message) error {
	e.b = append(e.b, `{"role":"`...)
	e.b = append(e.b, e.role(m.Role)...)
	e.b = append(e.b, '"')
	if m.Name != "" {
		e.str("name", m.Name)
	}
	if m.Role == chat.Assistant {
		e.assistant(m)
	} else {
		e.b = append(e.b, `,"content":`...)
		if err := e.parts(m); err != nil {
			return err
		}
	}
	e.b = append(e.b, '}')
	return nil
}

// path is where part j of m is in the client's body.
func path(m *chat.Message, p *chat.Part) string {
	if m.At < 0 {
		return "system[" + strconv.Itoa(p.At) + "]"
	}
	return "messages[" + strconv.Itoa(m.At) + "].content[" + strconv.Itoa(p.At) + "]"
}

// onlyText reports whether parts are text without cache markers, so that a single one can
// be written as a string.
func onlyText(m *chat.Message) bool {
	for i := range m.Parts {
		if m.Parts[i].Kind != chat.Text {
			return false
		}
	}
	return true
}

// parts writes the content of a message that is not an assistant's.
func (e *requestEncoder) parts(m *chat.Message) error {
	if len(m.Parts) == 1 && onlyText(m) && (m.Parts[0].Cache == chat.NoCache || e.t.NoCacheControl && !e.t.Breakpoints) {
		if c := m.Parts[0].Cache; c != chat.NoCache {
			e.dropMarker(c, path(m, &m.Parts[0]))
		}
		e.b = wire.AppendJSONString(e.b, m.Parts[0].Text)
		return nil
	}
	e.b = append(e.b, '[')
	n := len(e.b)
	for i := range m.Parts {
		p := &m.Parts[i]
		before := len(e.b)
		if before > n {
			e.b = append(e.b, ',')
		}
		start := len(e.b)
		if err := e.part(m, p); err != nil {
			return err
		}
		if len(e.b) == start {
			e.b = e.b[:before]
			continue
		}
		if p.Cache != chat.NoCache {
			e.b = e.b[:len(e.b)-1] // the marker belongs inside of the part
			if e.t.Breakpoints && TakesBreakpoint(m, p) {
				e.b = e.breakpoints.Append(e.b, p.Cache, e.loss, path(m, p))
			} else {
				e.marker(p.Cache, func() string { return path(m, p) })
			}
			e.b = append(e.b, '}')
		}
	}
	e.b = append(e.b, ']')
	return nil
}

// part writes one content part; nothing for one that is reported as lost.
func (e *requestEncoder) part(m *chat.Message, p *chat.Part) error {
	switch p.Kind {
	case chat.Text:
		e.b = append(e.b, `{"type":"text","text":`...)
		e.b = wire.AppendJSONString(e.b, p.Text)
		e.b = append(e.b, '}')
	case chat.Image:
		if e.t.NoImages {
			return fault.Invalid(path(m, p), "%s is an image, which this model does not accept", path(m, p))
		}
		if p.Media.FileID != "" {
			return fault.Invalid(path(m, p), "%s is a file of another provider", path(m, p))
		}
		e.b = append(e.b, `{"type":"image_url","image_url":{"url":`...)
		e.b = appendURL(e.b, p.Media)
		if p.Media.Detail != "" {
			e.str("detail", p.Media.Detail)
		}
		e.b = append(e.b, `}}`...)
	case chat.Document:
		return e.document(m, p)
	case chat.Audio:
		e.b = append(e.b, `{"type":"input_audio","input_audio":{"data":`...)
		e.b = wire.AppendJSONString(e.b, p.Media.Data)
		if p.Media.Format != "" {
			e.str("format", p.Media.Format)
		}
		e.b = append(e.b, `}}`...)
	default:
		e.loss.Add(path(m, p), notTaken)
	}
	return nil
}

// document writes a file part. Text documents become text.
func (e *requestEncoder) document(m *chat.Message, p *chat.Part) error {
	media := p.Media
	switch {
	case media.Plain:
		e.b = append(e.b, `{"type":"text","text":`...)
		e.b = wire.AppendJSONString(e.b, media.Data)
		e.b = append(e.b, '}')
		return nil
	case e.t.NoDocuments:
		return fault.Invalid(path(m, p), "%s is a document, which this model does not accept", path(m, p))
	case media.URL != "":
		return fault.Invalid(path(m, p), "%s is a document at a URL; this provider accepts documents as data only", path(m, p))
	case media.FileID != "":
		e.b = append(e.b, `{"type":"file","file":{"file_id":`...)
		e.b = wire.AppendJSONString(e.b, media.FileID)
	default:
		name := media.Name
		if name == "" {
			name = "document.pdf"
		}
		e.b = append(e.b, `{"type":"file","file":{"filename":`...)
		e.b = wire.AppendJSONString(e.b, name)
		e.b = append(e.b, `,"file_data":`...)
		e.b = appendURL(e.b, media)
	}
	e.b = append(e.b, `}}`...)
	return nil
}

// appendURL writes the address of media: as it is, or as a data: URL.
func appendURL(dst []byte, m *chat.Media) []byte {
	if m.Data == "" {
		return wire.AppendJSONString(dst, m.URL)
	}
	mime := m.MIME
	if mime == "" {
		mime = "application/octet-stream"
	}
	dst = append(dst, `"data:`...)
	dst = append(dst, mime...) // the type was recognised or given, so it needs no escapes
	dst = append(dst, `;base64,`...)
	dst = append(dst, m.Data...)
	return append(dst, '"')
}

// assistant writes content, refusal and calls of an assistant's message.
func (e *requestEncoder) assistant(m *chat.Message) {
	refusal := ""
	texts := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case chat.Text:
			texts++
			if p.Cache != chat.NoCache {
				e.dropMarker(p.Cache, path(m, p))
			}
		case chat.Refusal:
			refusal = p.Text
		case chat.Call:
			if p.Cache != chat.NoCache {
				e.dropMarker(p.Cache, path(m, p))
			}
		case chat.Reasoned, chat.RedactedReasoned: // see reasoning
		default:
			e.loss.Add(path(m, p), notTaken)
		}
	}
	e.reasoning(m)
	e.b = append(e.b, `,"content":`...)
	if texts > 0 {
		e.b = wire.AppendJSONString(e.b, m.Text())
	} else {
		e.b = append(e.b, "null"...)
	}
	if refusal != "" {
		e.str("refusal", refusal)
	}
	n := 0
	for i := range m.Parts {
		if c := m.Parts[i].Call; c != nil {
			if n == 0 {
				e.b = append(e.b, `,"tool_calls":[`...)
			} else {
				e.b = append(e.b, ',')
			}
			n++
			e.call(c)
		}
	}
	if n > 0 {
		e.b = append(e.b, ']')
	} else if texts == 0 && refusal == "" {
		// An empty message is rejected: all of its parts were lost.
		e.b = append(e.b[:len(e.b)-len("null")], `""`...)
	}
}

func (e *requestEncoder) call(c *chat.ToolCall) {
	args := c.Arguments
	switch {
	case c.Custom:
		args = chat.WrapText(args)
	case args == "":
		args = "{}"
	}
	e.b = append(e.b, `{"id":`...)
	e.b = wire.AppendJSONString(e.b, hosts.CallID(e.t.Provider, c.ID))
	e.b = append(e.b, `,"type":"function","function":{"name":`...)
	e.b = wire.AppendJSONString(e.b, chat.LegalName(c.Name, e.max))
	e.b = append(e.b, `,"arguments":`...)
	e.b = wire.AppendJSONString(e.b, args)
	e.b = append(e.b, `}}`...)
}

// result writes a tool message. Parts that are not text are added to media.
func (e *requestEncoder) result(m *chat.Message, p *chat.Part, media []chat.Part) []chat.Part {
	r := p.Result
	if p.Cache != chat.NoCache {
		e.dropMarker(p.Cache, path(m, p))
	}
	e.b = append(e.b, `{"role":"tool","tool_call_id":`...)
	e.b = wire.AppendJSONString(e.b, hosts.CallID(e.t.Provider, r.CallID))
	inner := chat.Message{Parts: r.Parts}
	text := inner.Text()
	moved := 0
	for i := range r.Parts {
		switch q := &r.Parts[i]; q.Kind {
		case chat.Text:
		case chat.Image, chat.Document:
			media = append(media, *q)
			if e.t.Breakpoints { // it is reported, see chat.BelowResultMarkers
				media[len(media)-1].Cache = chat.NoCache
			}
			moved++
		default:
			e.loss.Add(path(m, p)+".content["+strconv.Itoa(i)+"]", notTaken)
		}
	}
	if r.IsError {
		e.loss.Add(path(m, p)+".is_error", notTaken)
	}
	if text == "" && moved > 0 {
		text = "The result is in the next message."
	}
	e.b = append(e.b, `,"content":`...)
	e.b = wire.AppendJSONString(e.b, text)
	e.b = append(e.b, '}')
	return media
}
