package said

import (
	"gateway/shared/wire"
)

// Scope chooses the texts.
type Scope string

// The scopes. The zero Scope is LastMessage.
const (
	LastMessage   Scope = "last_message"   // the last message of a request, the first choice of an answer
	AllMessages   Scope = "all_messages"   // all messages of a request, all choices of an answer
	System        Scope = "system"         // messages of the system and the developer
	ToolArguments Scope = "tool_arguments" // arguments of tool calls
	ToolResults   Scope = "tool_results"   // what tools returned
	Reasoning     Scope = "reasoning"      // what a model thought
)

// Scopes are all, in the order of the documentation.
var Scopes = []string{string(LastMessage), string(AllMessages), string(System), string(ToolArguments), string(ToolResults), string(Reasoning)}

// ToolCall is the kind of a tool call that comes by itself, and not in a conversation: the
// request has the tool's name and arguments, the answer is its result.
const ToolCall = "mcp"

// AgentCall is the kind of a call to an agent: its texts are in parts, wherever messages,
// tasks and events have them.
const AgentCall = "agent"

// class tells what a piece of a body is.
type class uint8

const (
	other     class = iota // a part that is not text: an image, a sound
	text                   // what somebody says
	arguments              // of a tool call
	result                 // of a tool
	thought
)

// piece is one text, and its place.
type piece struct {
	message int // index in the list of messages or choices; -1: beside them
	system  bool
	class   class
	at      wire.Span // of the JSON value: a string, or an object for arguments; absent: no text
}

// Found are the texts of a body.
type Found struct {
	Texts []string // "" for a part that is no text
	// ToolCalls says that the body, or of an answer the first choice, calls tools.
	ToolCalls bool
	places    []wire.Span
	twice     []wire.Span // members that repeat the texts
}

// InRequest finds the texts of a client's body. kind is the type of the request. A body
// that cannot be read has no texts.
func InRequest(kind string, body []byte, scope Scope) Found {
	r := reading{body: body, d: wire.NewDecoder(body)}
	switch kind {
	case "chatComplete", "messages":
		r.conversation()
	case "complete":
		r.plain("prompt")
	case "embed":
		r.plain("input")
	case "createModelResponse", "realtime":
		r.responses("input")
	case "moderate":
		r.plain("input")
	case "rerank":
		r.plain("query")
	case "imageGenerate":
		r.plain("prompt")
	case "createSpeech":
		r.plain("input")
	case ToolCall:
		r.tools = true
		r.toolCall()
	case AgentCall:
		r.agent()
	}
	return r.choose(scope, r.last)
}

// InAnswer finds the texts of an answer in the client's shape.
func InAnswer(kind string, body []byte, scope Scope) Found {
	r := reading{body: body, d: wire.NewDecoder(body), answer: true}
	switch kind {
	case "chatComplete", "complete":
		r.choices()
	case "messages":
		r.message(0, false)
	case "createModelResponse", "realtime":
		r.responses("output")
	case ToolCall:
		r.tools = true
		r.toolResult()
	case AgentCall:
		r.agent()
	}
	return r.choose(scope, 0)
}

// choose picks the pieces of a scope. last is the message that counts as the last.
func (r *reading) choose(scope Scope, last int) Found {
	if r.d.Err() != nil {
		return Found{}
	}
	f := Found{twice: r.twice}
	for i := range r.pieces {
		p := &r.pieces[i]
		if p.class == arguments && (!r.answer || p.message <= 0 || r.flat) {
			f.ToolCalls = true
		}
		if !p.in(scope, last, r.flat) && !(r.tools && p.class == arguments && (scope == "" || scope == LastMessage || scope == AllMessages)) {
			continue
		}
		f.places = append(f.places, p.at)
		raw := p.at.Of(r.body)
		if wire.KindOf(raw) == wire.KindString {
			f.Texts = append(f.Texts, string(wire.AppendUnquoted(nil, raw)))
		} else {
			f.Texts = append(f.Texts, string(raw))
		}
	}
	return f
}

// in tells whether a scope includes the piece. flat: the messages are the items of one
// answer, which belong together.
func (p *piece) in(scope Scope, last int, flat bool) bool {
	switch scope {
	case AllMessages:
		return p.class == text || p.class == other || p.class == result
	case System:
		return p.system && p.class == text
	case ToolArguments:
		return p.class == arguments
	case ToolResults:
		return p.class == result
	case Reasoning:
		return p.class == thought
	}
	return (p.message == last || flat) && (p.class == text || p.class == other || p.class == result)
}

// With gives the body with new texts in place of those that were found; a nil text leaves
// the place unchanged.
func (f *Found) With(body []byte, texts []*string) []byte {
	edits := make([]wire.Edit, 0, len(texts))
	for i, t := range texts {
		if t == nil || i >= len(f.places) || f.places[i].Absent() || *t == f.Texts[i] {
			continue
		}
		edits = append(edits, wire.Replace(f.places[i], f.written(body, i, *t)))
	}
	if len(edits) == 0 {
		return body
	}
	for _, again := range f.twice {
		edits = append(edits, wire.Delete(again))
	}
	return wire.Splice(nil, body, edits...)
}

// written is a text as the JSON value that it replaces: arguments that were an object stay
// an object.
func (f *Found) written(body []byte, i int, t string) []byte {
	if wire.KindOf(f.places[i].Of(body)) == wire.KindString {
		return wire.AppendJSONString(nil, t)
	}
	if wire.KindOf([]byte(t)) == wire.KindObject && wire.CheckStrict([]byte(t), wire.MaxDepth) == nil {
		return []byte(t)
	}
	return append(wire.AppendJSONString([]byte(`{"text":`), t), '}')
}
