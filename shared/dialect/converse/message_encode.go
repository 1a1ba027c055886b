package converse

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// blank reports whether s is a text that the provider rejects as a block.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

func path(m *chat.Message, p *chat.Part) func() string {
	return func() string { return upstream.Path(m, p) }
}

// dropName reports the name of a participant.
func dropName(e *requestEncoder, m *chat.Message) {
	if m.Name != "" && m.Role != chat.ToolRole {
		e.loss.Add(upstream.Path(m, nil)+".name", notTaken)
	}
}

// text writes a block of text.
func text(e *requestEncoder, s string) {
	e.Open('{')
	e.Str("text", s)
	e.Close('}')
}

// encodeMessages writes the turns. Neighbors of one side are one message; in the
// user's, tool results come first.
func encodeMessages(e *requestEncoder) error {
	e.Key("messages")
	e.Open('[')
	ms := e.r.Messages
	last := claude.LastNonSystem(ms)
	users := 0
	var role byte            // role of the message that is open: u, a, or 0 for none
	var later []placedPrompt // those that wait for the end of the user's turn
	placed := e.placed
	for i := 0; i < len(ms); {
		side := sideOf(&ms[i])
		if side == 0 {
			i++
			continue
		}
		end, start, skip := run(ms, i), len(e.B), e.skip
		if side != role {
			if role != 0 {
				e.B = append(e.B, "]}"...)
			}
			systemTurn(e, later)
			openMessage(e, side)
		}
		content := len(e.B)
		if err := turn(e, ms[i:end], i, last); err != nil {
			return err
		}
		switch {
		case len(e.B) == content: // nothing of it is written
			e.B, e.skip = e.B[:start], skip
		case side == 'a' && users == 0:
			return fault.Invalid("messages", "messages must begin with a message of the user for this provider")
		default:
			if side != role {
				later = nil
			}
			if role = side; side == 'u' {
				users++
			}
		}
		var here []placedPrompt
		here, placed = behind(placed, end)
		later = append(later, here...)
		i = end
	}
	if users == 0 {
		if e.r.Completion != nil {
			return fault.Invalid("prompt", "prompt must not be blank for this provider")
		}
		return fault.Invalid("messages", "messages must contain a message of the user with content: this provider requires one")
	}
	e.B = append(e.B, "]}"...)
	systemTurn(e, later)
	e.B = append(e.B, ']')
	return nil
}

func openMessage(e *requestEncoder, side byte) {
	e.Open('{')
	if side == 'u' {
		e.Str("role", "user")
	} else {
		e.Str("role", "assistant")
	}
	e.Key("content")
	e.Open('[')
}

// sideOf is who speaks on the wire: u, a, or 0 for a system prompt.
func sideOf(m *chat.Message) byte {
	switch m.Role {
	case chat.User, chat.ToolRole:
		return 'u'
	case chat.Assistant:
		return 'a'
	}
	return 0
}

// run is the end of the run of messages of one side that begins at i. System
// prompts do not end it.
func run(ms []chat.Message, i int) int {
	side, end := sideOf(&ms[i]), i+1
	for ; end < len(ms); end++ {
		if s := sideOf(&ms[end]); s != 0 && s != side {
			break
		}
	}
	return end
}

// turn writes the messages of one side. first is the index of the first of them,
// last that of the conversation's last message.
func turn(e *requestEncoder, ms []chat.Message, first, last int) error {
	if sideOf(&ms[0]) == 'a' {
		for i := range ms {
			if sideOf(&ms[i]) == 'a' {
				if err := assistant(e, &ms[i], first+i == last); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for i := range ms {
		if ms[i].Role == chat.ToolRole {
			for j := range ms[i].Parts {
				if err := result(e, &ms[i], &ms[i].Parts[j]); err != nil {
					return err
				}
			}
		}
	}
	documents, texts := -1, false
	for i := range ms {
		if ms[i].Role != chat.User {
			continue
		}
		m := &ms[i]
		dropName(e, m)
		before := len(e.B)
		for j := range m.Parts {
			p := &m.Parts[j]
			if p.Kind == chat.Document && documents < 0 {
				documents = i
			}
			texts = texts || p.Kind == chat.Text && !blank(p.Text)
			if err := part(e, m, p); err != nil {
				return err
			}
		}
		if len(e.B) == before {
			e.loss.Add(upstream.Path(m, nil), "the message is blank")
		}
	}
	if documents >= 0 && !texts {
		at := upstream.Path(&ms[documents], nil)
		return fault.Invalid(at, "%s must contain a text in addition to its document for this provider", at)
	}
	return nil
}

// part writes one block of content, with its cache point.
func part(e *requestEncoder, m *chat.Message, p *chat.Part) error {
	before := len(e.B)
	switch p.Kind {
	case chat.Text, chat.Refusal:
		if blank(p.Text) {
			lostMarker(e, p.Cache, path(m, p))
			return nil
		}
		text(e, p.Text)
	case chat.Image, chat.Document, chat.Audio:
		if err := media(e, m, p); err != nil {
			return err
		}
	case chat.Foreign:
		if e.r.Dialect != name {
			e.loss.Add(upstream.Path(m, p), notTaken)
			return nil
		}
		e.Open('{')
		e.B = append(e.B[:len(e.B)-1], p.Raw...)
	default:
		e.loss.Add(upstream.Path(m, p), notTaken)
	}
	if len(e.B) > before {
		cachePoint(e, p.Cache, path(m, p))
	}
	return nil
}

// assistant writes a message of the assistant in its order. Reasoning stored for a call
// is written before that call, that of the first call before everything. last marks the
// message that the model continues.
func assistant(e *requestEncoder, m *chat.Message, last bool) error {
	dropName(e, m)
	calls := 0
	for i := range m.Parts {
		if m.Parts[i].Call != nil {
			if calls++; calls == 1 {
				thoughts(e, e.recalled[&m.Parts[i]])
			}
		}
	}
	calls = 0
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case chat.Reasoned, chat.RedactedReasoned:
			if !signed(e, p) {
				e.loss.Add(upstream.Path(m, p), "reasoning without this provider's signature")
				continue
			}
			thought(e, p)
		case chat.Call:
			if calls++; calls > 1 {
				thoughts(e, e.recalled[p])
			}
			if err := call(e, m, p); err != nil {
				return err
			}
		case chat.Image:
			e.loss.Add(upstream.Path(m, p), chat.ImageOfAssistant)
		default:
			q := *p
			if last && i == len(m.Parts)-1 && p.Kind == chat.Text {
				q.Text = strings.TrimRight(p.Text, " \t\r\n")
			}
			if err := part(e, m, &q); err != nil {
				return err
			}
		}
	}
	return nil
}

func thoughts(e *requestEncoder, parts []chat.Part) {
	for i := range parts {
		thought(e, &parts[i])
	}
}

// thought writes signed reasoning unchanged. A signature without text is possible.
func thought(e *requestEncoder, p *chat.Part) {
	e.Open('{')
	e.Key("reasoningContent")
	e.Open('{')
	if p.Kind == chat.RedactedReasoned {
		e.Str("redactedContent", p.Data)
	} else {
		e.Key("reasoningText")
		e.Open('{')
		e.Str("text", p.Text)
		e.Str("signature", p.Signature)
		e.Close('}')
	}
	e.B = append(e.B, "}}"...)
}

// toolID is a tool call's id in the letters and length that the provider takes.
func toolID(id string) string { return chat.LegalName(id, maxToolID) }

// call writes one tool call. Its arguments go out byte for byte.
func call(e *requestEncoder, m *chat.Message, p *chat.Part) error {
	c, at := p.Call, upstream.Path(m, p)
	if c.ID == "" {
		return fault.Invalid(at+".id", "%s.id must name the call", at)
	}
	field := at + ".function.arguments"
	if e.r.Legacy && strings.HasPrefix(c.ID, "call_function_") {
		field = upstream.Path(m, nil) + ".function_call.arguments"
	}
	args, err := upstream.Arguments(c, field)
	if err != nil {
		return err
	}
	if e.flat {
		e.loss.Add(at, "written as text, as no tool is offered")
		text(e, "[Call "+c.ID+" of the tool "+c.Name+" with "+args+"]")
	} else {
		e.Open('{')
		e.Key("toolUse")
		e.Open('{')
		e.Str("toolUseId", toolID(c.ID))
		e.Str("name", chat.LegalName(c.Name, maxToolName))
		e.Raw("input", []byte(args))
		e.B = append(e.B, "}}"...)
	}
	cachePoint(e, p.Cache, path(m, p))
	return nil
}

// result writes one tool result.
func result(e *requestEncoder, m *chat.Message, p *chat.Part) error {
	r, at := p.Result, upstream.Path(m, nil)
	if r.CallID == "" {
		return fault.Invalid(at+".tool_call_id", "%s.tool_call_id must name the tool call that it responds to", at)
	}
	marker := p.Cache
	if e.flat {
		e.loss.Add(at, "written as text, as no tool is offered")
		what := "Result"
		if r.IsError {
			what = "Failure"
		}
		text(e, "["+what+" of the call "+r.CallID+"]")
	} else {
		e.Open('{')
		e.Key("toolResult")
		e.Open('{')
		e.Str("toolUseId", toolID(r.CallID))
		e.Key("content")
		e.Open('[')
	}
	inner := chat.Message{At: m.At, Parts: r.Parts, IsString: r.Plain}
	for i := range r.Parts {
		q := r.Parts[i]
		if q.Cache != chat.NoCache { // a cache point follows the complete result
			if marker != chat.NoCache {
				lostMarkerOf(e, &inner, &q)
			}
			marker = q.Cache
		}
		q.Cache = chat.NoCache
		if err := part(e, &inner, &q); err != nil {
			return err
		}
	}
	if !e.flat {
		e.Close(']')
		if r.IsError {
			e.Str("status", "error")
		}
		e.B = append(e.B, "}}"...)
	}
	cachePoint(e, marker, path(m, nil))
	return nil
}

// lostMarkerOf reports a cache marker in a result that has too many of them.
func lostMarkerOf(e *requestEncoder, m *chat.Message, p *chat.Part) {
	e.skip = max(0, e.skip-1)
	e.loss.Add(upstream.Path(m, p)+".cache_control", "a result has one cache point, at its end ("+strconv.Itoa(len(m.Parts))+" parts)")
}
