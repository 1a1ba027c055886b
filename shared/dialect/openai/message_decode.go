package openai

import (
	"bytes"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

func (q *requestDecoder) messages() {
	q.r.Messages = make([]chat.Message, 0, 4) // as most have
	for i := range q.d.Array {
		m := message{q: q, at: i}
		m.read()
		if q.d.Err() != nil {
			return
		}
		m.add()
	}
}

// message is a message that is being read: the fields may come in any order.
type message struct {
	q  *requestDecoder
	at int

	role, name, callID string
	parts              []chat.Part
	blocks             []chat.Part // content_blocks
	images             []chat.Part
	calls              []chat.Part
	function           *chat.ToolCall
	refusal            string
	reasoning          string
	cache              chat.Cache
	plain              bool
	hasContent         bool
}

func (m *message) read() {
	d := m.q.d
	whole := *d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "role":
			if m.role = roleName(d.Bytes()); m.role == "" {
				d.Fail("must be system, developer, user, assistant, tool or function")
			}
		case "content":
			m.content()
		case "content_blocks":
			m.blocks = m.list()
		case "images":
			m.images = imageParts(d)
		case "name":
			m.name = d.Str()
		case "tool_call_id":
			m.callID = d.Str()
		case "tool_calls":
			for i := range d.Array {
				m.toolCall(i)
			}
		case "function_call":
			m.function = m.legacyCall()
		case "refusal":
			m.refusal = d.Str()
		case "reasoning_content":
			m.reasoning = upstream.OptString(d)
		case "cache_control":
			m.cache = jsonfield.CacheMarker(d)
		case "annotations", "audio_transcript":
			// Responses of the gateway and the provider carry them; they are not read back.
		default:
			m.q.r.Unknown(m.at, -1, key)
		}
	}
	if m.role == "" {
		jsonfield.Missing(d, &whole, "role")
	}
}

// roleName returns the name of a role; "" for another word.
func roleName(word []byte) string {
	for _, name := range [...]string{"user", "assistant", "system", "tool", "developer", "function"} {
		if string(word) == name {
			return name
		}
	}
	return ""
}

func (m *message) content() {
	d := m.q.d
	m.hasContent = true
	if d.Kind() == wire.KindString {
		m.plain = true
		m.parts = []chat.Part{{Kind: chat.Text, Text: d.Str()}}
		return
	}
	m.parts = m.list()
}

// list reads a list of content parts.
func (m *message) list() []chat.Part {
	d := m.q.d
	var parts []chat.Part
	for i := range d.Array {
		p := m.q.part(m.at, i)
		if p.Kind != 0 {
			p.At = i
			parts = append(parts, p)
		}
	}
	return parts
}

func (m *message) toolCall(i int) {
	d := m.q.d
	whole := *d
	c := &chat.ToolCall{}
	p := chat.Part{Kind: chat.Call, Call: c, At: i}
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "id":
			c.ID = d.Str()
		case "type":
			c.Custom = d.Str() == "custom"
		case "function", "custom":
			for inner := range d.Object {
				switch string(inner) {
				case "name":
					c.Name = d.Str()
				case "arguments", "input":
					c.Arguments = arguments(d)
				case "thought_signature":
					c.Signature = upstream.OptString(d)
				}
			}
		case "cache_control":
			p.Cache = jsonfield.CacheMarker(d)
		}
	}
	if c.Name == "" {
		jsonfield.Missing(d, &whole, "function.name")
	}
	m.calls = append(m.calls, p)
}

// arguments reads the arguments of a call: text that holds JSON. Some clients
// send the object itself.
func arguments(d *wire.Decoder) string {
	switch d.Kind() {
	case wire.KindObject:
		return string(d.Raw())
	case wire.KindNull:
		d.Skip()
		return ""
	}
	return d.Str()
}

func (m *message) legacyCall() *chat.ToolCall {
	d := m.q.d
	c := &chat.ToolCall{}
	for key := range d.Object {
		switch string(key) {
		case "name":
			c.Name = d.Str()
		case "arguments":
			c.Arguments = arguments(d)
		}
	}
	return c
}

// add makes the canonical message.
func (m *message) add() {
	q := m.q
	out := chat.Message{Name: m.name, Parts: m.parts, At: m.at, IsString: m.plain}
	if m.cache != chat.NoCache && len(out.Parts) > 0 {
		out.Parts[len(out.Parts)-1].Cache = m.cache
	}
	switch m.role {
	case "system":
		out.Role = chat.System
	case "developer":
		out.Role = chat.Developer
	case "user":
		out.Role = chat.User
	case "assistant":
		out.Role = chat.Assistant
		m.assistant(&out)
	case "tool":
		out.Role = chat.ToolRole
		m.result(&out, m.callID)
	case "function":
		out.Role = chat.ToolRole
		m.result(&out, q.lastFunction)
	}
	q.r.Messages = append(q.r.Messages, out)
}

// assistant puts the parts of an assistant's message in order: thinking, text,
// calls.
func (m *message) assistant(out *chat.Message) {
	if len(m.blocks) > 0 {
		if slices.ContainsFunc(m.blocks, func(p chat.Part) bool { return p.Kind == chat.Text }) {
			out.Parts = m.blocks
		} else {
			// Some clients give back only the thinking as blocks, and the text beside it.
			out.Parts = append(m.blocks, out.Parts...)
		}
		out.IsString = false
	} else if m.reasoning != "" {
		out.Parts = append([]chat.Part{{Kind: chat.Reasoned, Text: m.reasoning}}, out.Parts...)
	}
	if !slices.ContainsFunc(m.blocks, isImage) {
		for i := range m.images {
			m.images[i].At = -1
		}
		out.Parts = append(out.Parts, m.images...)
	}
	if m.refusal != "" {
		out.Parts = append(out.Parts, chat.Part{Kind: chat.Refusal, Text: m.refusal})
	}
	out.Parts = append(out.Parts, m.calls...)
	if m.function != nil {
		m.function.ID = functionCallID(m.at)
		m.q.lastFunction = m.function.ID
		out.Parts = append(out.Parts, chat.Part{Kind: chat.Call, Call: m.function})
	}
	if len(out.Parts) != 1 || out.Parts[0].Kind != chat.Text {
		out.IsString = false
	}
}

// result makes the message the result of a tool call.
func (m *message) result(out *chat.Message, callID string) {
	p := chat.Part{Kind: chat.Result, Result: &chat.ToolResult{CallID: callID, Name: m.name, Parts: out.Parts, Plain: m.plain}}
	if n := len(out.Parts); n > 0 {
		p.Cache, out.Parts[n-1].Cache = out.Parts[n-1].Cache, chat.NoCache
	}
	out.Parts, out.IsString = []chat.Part{p}, false
}

// part reads one content part. A part of an unknown type is unchanged.
func (q *requestDecoder) part(message, at int) chat.Part {
	d := q.d
	if d.Kind() == wire.KindString { // some clients put strings in the list
		return chat.Part{Kind: chat.Text, Text: d.Str()}
	}
	whole := *d
	var p chat.Part
	media := new(chat.Media)
	kind, unknown := q.partMembers(&p, media)
	if d.Err() != nil {
		return p
	}
	switch kind {
	case "text":
		p.Kind = chat.Text
	case "refusal":
		p.Kind = chat.Refusal
	case "thinking":
		p.Kind = chat.Reasoned
	case "redacted_thinking":
		p.Kind = chat.RedactedReasoned
	case "image_url":
		p.Kind = chat.Image
		if media.MIME == "application/pdf" {
			p.Kind = chat.Document
		}
		p.Media = media
	case "input_audio":
		p.Kind = chat.Audio
		p.Media = media
	case "file":
		p.Kind = chat.Document
		if strings.HasPrefix(media.MIME, "image/") {
			p.Kind = chat.Image
		}
		p.Media = media
	case "tool_use":
		return chat.Part{} // it is in tool_calls as well
	case "":
		jsonfield.Missing(d, &whole, "type")
	default:
		return chat.Part{Kind: chat.Foreign, Type: kind, Raw: bytes.Clone(whole.Raw()), Cache: p.Cache}
	}
	for _, key := range unknown {
		q.r.Unknown(message, at, []byte(key))
	}
	return p
}

// partMembers reads the fields of a content part into p and media. It returns the part's
// type and the names of unknown fields.
func (q *requestDecoder) partMembers(p *chat.Part, media *chat.Media) (kind string, unknown []string) {
	d := q.d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
		case "text", "thinking", "refusal":
			p.Text = d.Str()
		case "signature":
			p.Signature = d.Str()
		case "data":
			p.Data = upstream.OptString(d)
		case "image_url":
			q.imageURL(media)
		case "input_audio":
			for inner := range d.Object {
				switch string(inner) {
				case "data":
					media.Data = d.Str()
				case "format":
					media.Format = d.Str()
				}
			}
		case "file":
			q.file(media)
		case "cache_control":
			p.Cache = jsonfield.CacheMarker(d)
		case "prompt_cache_breakpoint":
			p.Cache = ReadBreakpoint(d, q.r)
		case "citations":
			if d.Kind() == wire.KindArray {
				p.Citations = bytes.Clone(d.Raw())
			} else {
				unknown = append(unknown, "citations")
			}
		default:
			unknown = append(unknown, string(key))
		}
	}
	return kind, unknown
}
