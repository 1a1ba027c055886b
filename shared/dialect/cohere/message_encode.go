package cohere

import (
	"bytes"
	"encoding/base64"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// documents writes the documents that the model may cite: the request's own field, and the
// texts that the user's messages hold as files.
func documents(e *requestEncoder) error {
	start := len(e.B)
	e.Key("documents")
	e.Open('[')
	n := 0
	for _, x := range e.r.Extra {
		if x.Name != "documents" {
			continue
		}
		if wire.KindOf(x.Raw) != wire.KindArray {
			return fault.Invalid("documents", "documents must be a list, not %s", wire.KindOf(x.Raw))
		}
		inner := bytes.TrimSpace(bytes.TrimSpace(x.Raw)[1 : len(bytes.TrimSpace(x.Raw))-1])
		e.B = append(e.B, inner...)
		n++
	}
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		for j := range m.Parts {
			p := &m.Parts[j]
			if m.Role != chat.User || p.Kind != chat.Document {
				continue
			}
			text, err := documentText(e, m, p)
			if err != nil {
				return err
			}
			n++
			e.Open('{')
			e.Key("data")
			e.Open('{')
			e.StrIf("title", p.Media.Name)
			e.Str("text", text)
			e.Close('}')
			e.Close('}')
		}
	}
	e.Close(']')
	if n == 0 {
		e.B = e.B[:start]
	}
	return nil
}

// documentText is the text of a file in a message; others are rejected.
func documentText(e *requestEncoder, m *chat.Message, p *chat.Part) (string, error) {
	at, media := upstream.Path(m, p), p.Media
	switch {
	case e.t.NoDocuments:
		return "", fault.Invalid(at, "%s is a document, which this model does not accept", at)
	case media.Data == "":
		return "", fault.Invalid(at, "%s must contain the text of the document itself: this provider reads no files by address or id", at)
	case media.Plain:
		return media.Data, nil
	case strings.HasPrefix(media.MIME, "text/") || media.MIME == "application/json":
		text, err := base64.StdEncoding.DecodeString(media.Data)
		if err != nil {
			return "", fault.Invalid(at, "%s is not valid base64", at)
		}
		return string(text), nil
	}
	return "", fault.Invalid(at, "%s is a document of type %q; this provider accepts text", at, media.MIME)
}

// encodeMessage writes one message.
func encodeMessage(e *requestEncoder, m *chat.Message) error {
	if m.Name != "" && m.Role != chat.ToolRole {
		e.loss.Add(upstream.Path(m, nil)+".name", upstream.UnsupportedField)
	}
	switch m.Role {
	case chat.Assistant:
		return assistant(e, m)
	case chat.ToolRole:
		return results(e, m)
	case chat.System, chat.Developer:
		return encodeInput(e, m, "system")
	}
	return encodeInput(e, m, "user")
}

// encodeInput writes a message of the system or of the user.
func encodeInput(e *requestEncoder, m *chat.Message, role string) error {
	e.Open('{')
	e.Str("role", role)
	if len(m.Parts) == 1 && m.Parts[0].Kind == chat.Text {
		marker(e, m, &m.Parts[0])
		e.Str("content", m.Parts[0].Text)
		e.Close('}')
		return nil
	}
	e.Key("content")
	e.Open('[')
	for i := range m.Parts {
		if err := part(e, m, &m.Parts[i], role); err != nil {
			return err
		}
	}
	e.Close(']')
	if bytes.HasSuffix(e.B, []byte(`"content":[]`)) {
		e.B = append(e.B[:len(e.B)-2], `""`...)
	}
	e.Close('}')
	return nil
}

// marker reports a cache marker.
func marker(e *requestEncoder, m *chat.Message, p *chat.Part) {
	if p.Cache != chat.NoCache {
		e.loss.Add(upstream.Path(m, p)+".cache_control", upstream.UnsupportedField)
	}
}

// part writes one part of the content of a system prompt or a user's message.
func part(e *requestEncoder, m *chat.Message, p *chat.Part, role string) error {
	marker(e, m, p)
	at := upstream.Path(m, p)
	switch {
	case p.Kind == chat.Text || p.Kind == chat.Refusal:
		encodeText(e, p.Text)
	case p.Kind == chat.Audio:
		return fault.Invalid(at, "%s is audio, which this provider does not accept", at)
	case role == "system":
		e.loss.Add(at, "a system prompt is text here")
	case p.Kind == chat.Image:
		return image(e, p, at)
	case p.Kind == chat.Document: // written with the documents
	default:
		e.loss.Add(at, upstream.UnsupportedField)
	}
	return nil
}

func encodeText(e *requestEncoder, s string) {
	e.Open('{')
	e.Str("type", "text")
	e.Str("text", s)
	e.Close('}')
}

func image(e *requestEncoder, p *chat.Part, at string) error {
	media := p.Media
	switch {
	case e.t.NoImages:
		return fault.Invalid(at, "%s is an image, which this model does not accept", at)
	case media.FileID != "":
		return fault.Invalid(at, "%s must be a data: or https: URL for this provider, not the id of a file", at)
	case media.URL != "" && !strings.HasPrefix(media.URL, "https://") && !strings.HasPrefix(media.URL, "http://"):
		return fault.Invalid(at, "%s must be a data: or https: URL for this provider", at)
	case media.URL == "" && !imageTypes[media.MIME]:
		return fault.Invalid(at, "%s is an image of type %q; this provider accepts image/jpeg, image/png, image/webp and image/gif", at, media.MIME)
	}
	address := media.URL
	if address == "" {
		address = "data:" + media.MIME + ";base64," + media.Data
	}
	e.Open('{')
	e.Str("type", "image_url")
	e.Key("image_url")
	e.Open('{')
	e.Str("url", address)
	e.StrIf("detail", media.Detail)
	e.Close('}')
	e.Close('}')
	return nil
}

var imageTypes = map[string]bool{"image/jpeg": true, "image/png": true, "image/webp": true, "image/gif": true}

// assistant writes a response of the model. Its text before tool calls is its plan.
func assistant(e *requestEncoder, m *chat.Message) error {
	calls := 0
	for i := range m.Parts {
		if m.Parts[i].Kind == chat.Call {
			calls++
		}
	}
	e.Open('{')
	e.Str("role", "assistant")
	if err := encodeResponseText(e, m, calls > 0); err != nil {
		return err
	}
	if calls > 0 {
		e.Key("tool_calls")
		e.Open('[')
		for i := range m.Parts {
			if p := &m.Parts[i]; p.Kind == chat.Call {
				if err := encodeCall(e, m, p); err != nil {
					return err
				}
			}
		}
		e.Close(']')
	}
	e.Close('}')
	return nil
}

// encodeResponseText writes the texts and thoughts of a response.
func encodeResponseText(e *requestEncoder, m *chat.Message, calls bool) error {
	var texts []string
	thoughts := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		marker(e, m, p)
		at := upstream.Path(m, p)
		switch p.Kind {
		case chat.Call:
		case chat.Text, chat.Refusal:
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		case chat.Reasoned:
			if p.Signature != "" || p.Origin != "" && p.Origin != name {
				e.loss.Add(at, "reasoning of another provider")
			} else if p.Text != "" {
				thoughts++
			}
		case chat.Image:
			e.loss.Add(at, chat.ImageOfAssistant)
		case chat.Document, chat.Audio:
			return fault.Invalid(at, "%s must be text: this provider accepts no media in messages of the assistant", at)
		default:
			e.loss.Add(at, upstream.UnsupportedField)
		}
	}
	switch {
	case calls && len(texts) > 0:
		e.Str("tool_plan", strings.Join(texts, "\n"))
		texts = nil
	case !calls && thoughts == 0 && len(texts) <= 1:
		e.Str("content", strings.Join(texts, ""))
		return nil
	}
	if thoughts+len(texts) == 0 {
		return nil
	}
	e.Key("content")
	e.Open('[')
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == chat.Reasoned && p.Text != "" && p.Signature == "" && (p.Origin == "" || p.Origin == name):
			e.Open('{')
			e.Str("type", "thinking")
			e.Str("thinking", p.Text)
			e.Close('}')
		case (p.Kind == chat.Text || p.Kind == chat.Refusal) && p.Text != "" && !calls:
			encodeText(e, p.Text)
		}
	}
	e.Close(']')
	return nil
}

// encodeCall writes one tool call. Empty arguments are an empty object.
func encodeCall(e *requestEncoder, m *chat.Message, p *chat.Part) error {
	c, at := p.Call, upstream.Path(m, p)
	if c.ID == "" {
		return fault.Invalid(at+".id", "%s.id must name the call", at)
	}
	args, err := upstream.Arguments(c, at+".function.arguments")
	if err != nil {
		return err
	}
	e.Open('{')
	e.Str("id", c.ID)
	e.Str("type", "function")
	e.Key("function")
	e.Open('{')
	e.Str("name", chat.LegalName(c.Name, maxToolName))
	e.Str("arguments", args)
	e.Close('}')
	e.Close('}')
	return nil
}

// results writes one message for each tool result.
func results(e *requestEncoder, m *chat.Message) error {
	for i := range m.Parts {
		p := &m.Parts[i]
		r, at := p.Result, upstream.Path(m, nil)
		switch {
		case r == nil:
			e.loss.Add(at, upstream.UnsupportedField)
			continue
		case r.CallID == "":
			return fault.Invalid(at+".tool_call_id", "%s.tool_call_id must name the tool call that it responds to", at)
		case r.IsError:
			e.loss.Add(at+".is_error", upstream.UnsupportedField)
		}
		marker(e, m, p)
		e.Open('{')
		e.Str("role", "tool")
		e.Str("tool_call_id", r.CallID)
		if err := resultContent(e, m, r); err != nil {
			return err
		}
		e.Close('}')
	}
	return nil
}

func resultContent(e *requestEncoder, m *chat.Message, r *chat.ToolResult) error {
	if len(r.Parts) == 0 || len(r.Parts) == 1 && r.Parts[0].Kind == chat.Text {
		inner := chat.Message{Parts: r.Parts}
		e.Str("content", inner.Text())
		return nil
	}
	e.Key("content")
	e.Open('[')
	inner := chat.Message{At: m.At}
	for i := range r.Parts {
		p := &r.Parts[i]
		marker(e, &inner, p)
		at := upstream.Path(&inner, p)
		switch p.Kind {
		case chat.Text:
			encodeText(e, p.Text)
		case chat.Document:
			text, err := documentText(e, &inner, p)
			if err != nil {
				return err
			}
			e.Open('{')
			e.Str("type", "document")
			e.Key("document")
			e.Open('{')
			e.Key("data")
			e.Open('{')
			e.StrIf("title", p.Media.Name)
			e.Str("text", text)
			e.B = append(e.B, `}}}`...)
		case chat.Image, chat.Audio:
			return fault.Invalid(at, "%s must be text: this provider accepts no media in the result of a tool", at)
		default:
			e.loss.Add(at, upstream.UnsupportedField)
		}
	}
	e.Close(']')
	return nil
}
