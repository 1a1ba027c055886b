package anthropic

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/dialect/claude"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// dropName reports the name of a participant.
func dropName(e *requestEncoder, m *chat.Message) {
	if m.Name != "" && m.Role != chat.ToolRole {
		e.loss.Add(path(m, nil)+".name", notTaken)
	}
}

// blank reports whether s is a text that the provider rejects as a block.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// system writes all system prompts, from any position, in their order.
func system(e *requestEncoder) error {
	upstream.MovedPrompts(e.r, e.loss)
	start := len(e.b)
	e.b = append(e.b, `,"system":[`...)
	n := 0
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		if m.Role != chat.System && m.Role != chat.Developer {
			continue
		}
		for j := range m.Parts {
			p := &m.Parts[j]
			switch {
			case p.Kind != chat.Text:
				e.loss.Add(path(m, p), "a system prompt is text here")
			case blank(p.Text):
				blankMarker(e, p, place{m: m, p: p})
			default:
				if n++; n > 1 {
					e.b = append(e.b, ',')
				}
				encodeText(e, p, place{m: m, p: p})
			}
		}
		dropName(e, m)
	}
	if e.format == claude.SchemaInPrompt {
		if n++; n > 1 {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, `{"type":"text","text":`...)
		e.b = wire.AppendJSONString(e.b, chat.JSONInstruction)
		e.b = append(e.b, '}')
	}
	if n == 0 {
		e.b = e.b[:start]
		return nil
	}
	e.b = append(e.b, ']')
	return nil
}

// blankMarker reports the cache marker of a text that is omitted because it is blank.
func blankMarker(e *requestEncoder, p *chat.Part, at place) {
	if p.Cache == chat.NoCache {
		return
	}
	if e.skip > 0 {
		e.skip--
	}
	e.loss.Add(at.String()+".cache_control", "the text is blank")
}

func encodeText(e *requestEncoder, p *chat.Part, at place) {
	e.b = append(e.b, `{"type":"text","text":`...)
	e.b = wire.AppendJSONString(e.b, p.Text)
	if len(p.Citations) > 0 {
		own, left := citation.FromAnthropic(p.Citations)
		if left > 0 {
			e.loss.Add(at.String()+".citations", "made by another provider")
		}
		if own != nil {
			encodeKey(e, "citations")
			e.b = append(e.b, own...)
		}
	}
	marker(e, p.Cache, at)
	e.b = append(e.b, '}')
}

// messages writes the turns. Tool results and the user's words that follow them
// become one message, results first.
func messages(e *requestEncoder) error {
	e.b = append(e.b, `,"messages":[`...)
	list := len(e.b)
	users := false
	ms := e.r.Messages
	last := claude.LastNonSystem(ms)
	for i := 0; i < len(ms); i++ {
		m := &ms[i]
		start := len(e.b)
		if start > list {
			e.b = append(e.b, ',')
		}
		var n int
		var err error
		switch m.Role {
		case chat.System, chat.Developer:
		case chat.Assistant:
			n, err = assistant(e, m, i == last)
		case chat.ToolRole:
			i, n, err = encodeResults(e, i)
			users = users || n > 0
		case chat.User:
			n, err = user(e, m)
			users = users || n > 0
		}
		if err != nil {
			return err
		}
		if n == 0 {
			e.b = e.b[:start]
		}
	}
	if !users {
		if e.r.Completion != nil {
			return fault.Invalid("prompt", "prompt must not be blank for this provider")
		}
		return fault.Invalid("messages", "messages must contain a message of the user with content: this provider requires one")
	}
	e.b = append(e.b, ']')
	return nil
}

// user writes a message of the user and gives the number of its blocks.
func user(e *requestEncoder, m *chat.Message) (int, error) {
	dropName(e, m)
	if m.IsString && len(m.Parts) == 1 && m.Parts[0].Cache == chat.NoCache {
		if blank(m.Parts[0].Text) {
			e.loss.Add(path(m, nil), "the message is blank")
			return 0, nil
		}
		e.b = append(e.b, `{"role":"user","content":`...)
		e.b = wire.AppendJSONString(e.b, m.Parts[0].Text)
		e.b = append(e.b, '}')
		return 1, nil
	}
	e.b = append(e.b, `{"role":"user","content":[`...)
	n, err := userParts(e, m, 0)
	e.b = append(e.b, `]}`...)
	if n == 0 {
		e.loss.Add(path(m, nil), "the message is blank")
	}
	return n, err
}

// userParts writes the parts of a user's message after n blocks.
func userParts(e *requestEncoder, m *chat.Message, n int) (int, error) {
	for i := range m.Parts {
		p := &m.Parts[i]
		start := len(e.b)
		if n > 0 {
			e.b = append(e.b, ',')
		}
		ok, err := part(e, p, place{m: m, p: p})
		if err != nil {
			return n, err
		}
		if !ok {
			e.b = e.b[:start]
			continue
		}
		n++
	}
	return n, nil
}

// part writes one block of content; false when it is omitted.
func part(e *requestEncoder, p *chat.Part, at place) (bool, error) {
	switch p.Kind {
	case chat.Text, chat.Refusal:
		if blank(p.Text) {
			blankMarker(e, p, at)
			return false, nil
		}
		encodeText(e, p, at)
		return true, nil
	case chat.Image, chat.Document:
		return true, encodeMedia(e, p, at)
	case chat.Audio:
		return false, fault.Invalid(at.String(), "%s is audio, which this provider does not accept", at)
	case chat.Foreign:
		if p.Origin == name || p.Origin == "" && e.r.Dialect == name || foreignBlocks[p.Type] {
			e.b = append(e.b, p.Raw...)
			if p.Type == "document" && e.r.Dialect != name && e.loss.StrictResponse && citationsEnabled(p.Raw) {
				e.loss.Add(at.String()+".citations", "places in a document have no address, by which the response names sources")
			}
			return true, nil
		}
	}
	e.loss.Add(at.String(), notTaken)
	return false, nil
}

// citationsEnabled reports whether a document is to be cited.
func citationsEnabled(document []byte) (enabled bool) {
	d := wire.NewDecoder(document)
	for key := range d.Object {
		if string(key) != "citations" || d.Kind() != wire.KindObject {
			continue
		}
		for key := range d.Object {
			if string(key) == "enabled" && d.Kind() == wire.KindBool {
				enabled = d.Bool()
			}
		}
	}
	return enabled
}

// foreignBlocks are blocks of this provider that clients of other dialects give back in
// content_blocks, as they got them.
var foreignBlocks = map[string]bool{
	"server_tool_use": true, "web_search_tool_result": true, "web_fetch_tool_result": true, "code_execution_tool_result": true,
	"bash_code_execution_tool_result": true, "text_editor_code_execution_tool_result": true, "tool_search_tool_result": true,
	"search_result": true, "container_upload": true, "document": true,
}

// encodeResults writes the tool messages from i on, and the user's message after them, as
// one message. It gives the index of the last one taken.
func encodeResults(e *requestEncoder, i int) (int, int, error) {
	ms := e.r.Messages
	e.b = append(e.b, `{"role":"user","content":[`...)
	n := 0
	last := i
	for ; i < len(ms); i++ {
		m := &ms[i]
		switch m.Role {
		case chat.System, chat.Developer:
			continue // written already
		case chat.ToolRole:
			for j := range m.Parts {
				if n > 0 {
					e.b = append(e.b, ',')
				}
				if err := encodeResult(e, m, &m.Parts[j]); err != nil {
					return last, n, err
				}
				n++
			}
			last = i
			continue
		case chat.User:
			dropName(e, m)
			before := n
			var err error
			if n, err = userParts(e, m, n); err != nil {
				return last, n, err
			}
			if n == before {
				e.loss.Add(path(m, nil), "the message is blank")
			}
			last = i
		}
		break
	}
	e.b = append(e.b, `]}`...)
	return last, n, nil
}

// encodeResult writes one tool_result block.
func encodeResult(e *requestEncoder, m *chat.Message, p *chat.Part) error {
	r := p.Result
	at := place{m: m}
	if r.CallID == "" {
		return fault.Invalid(at.String()+".tool_call_id", "%s.tool_call_id must name the tool call that it responds to", at)
	}
	e.b = append(e.b, `{"type":"tool_result","tool_use_id":`...)
	e.b = wire.AppendJSONString(e.b, legalID(r.CallID))
	if r.Plain && len(r.Parts) == 1 {
		str(e, "content", r.Parts[0].Text)
	} else {
		encodeKey(e, "content")
		e.b = append(e.b, '[')
		inner := chat.Message{At: m.At, Parts: r.Parts}
		if _, err := userParts(e, &inner, 0); err != nil {
			return err
		}
		e.b = append(e.b, ']')
	}
	if r.IsError {
		e.b = append(e.b, `,"is_error":true`...)
	}
	marker(e, p.Cache, at)
	e.b = append(e.b, '}')
	return nil
}
