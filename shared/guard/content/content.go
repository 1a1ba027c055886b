// Package content extracts the texts that checks judge from requests and responses in every
// client format, and writes changed texts back. All other bytes stay unchanged.
package content

import (
	"encoding/base64"
	"slices"
	"sort"

	"gateway/shared/wire"
)

// Scope selects texts.
type Scope string

// The scopes. The zero Scope is LastMessage.
const (
	LastMessage   Scope = "last_message"   // the last message of a request and the texts outside the messages; every choice of a response
	AllMessages   Scope = "all_messages"   // all messages of a request, every choice of a response
	System        Scope = "system"         // system and developer messages; definitions of tools and formats
	ToolArguments Scope = "tool_arguments" // arguments of tool calls
	ToolResults   Scope = "tool_results"   // results of tools
	Reasoning     Scope = "reasoning"      // thoughts of a model
)

// Scopes lists all scopes in the order of the documentation.
var Scopes = []string{string(LastMessage), string(AllMessages), string(System), string(ToolArguments), string(ToolResults), string(Reasoning)}

// Prompt is System without definitions. Checks cannot select it.
const Prompt Scope = "system_prompt"

// ToolCall is the kind of a request about one tool, prompt or resource of an MCP server.
const ToolCall = "mcp"

// AgentCall is the kind of a message to an agent.
const AgentCall = "agent"

// class classifies a text.
type class uint8

const (
	text      class = iota // of a message
	arguments              // of a tool call
	result                 // of a tool
	reasoned               // by a model
	other                  // a part other than text: an image, audio
)

// form is the encoding of a text in the body.
type form uint8

const (
	formText    form = iota // a string
	formObject              // an object, which is one text
	formBase64              // a string with the base64 of the text
	formDataURL             // a data URL with the base64 of the text
	formEncoded             // base64 that may be text; not yet decided
	formMade                // base64 of an image or a text; not yet decided
)

// piece is a text and its position.
type piece struct {
	message    int // index in the list of messages or choices, or beside
	last       bool
	system     bool
	definition bool
	call       bool // arguments of a call that the client or the gateway executes
	again      bool // it may repeat another piece
	name       bool // name of a participant or a tool; not yet decided
	first      bool // it precedes the other texts of its message
	media      bool // below a field of images, audio or vectors
	class      class
	form       form
	at         wire.Span // of the JSON value; absent if there is no text
	path       uint64
}

// Found contains the texts of a body.
type Found struct {
	Texts []string // empty for a part without text
	// ToolCalls reports whether the body calls tools.
	ToolCalls bool
	// Choices are the alternatives of a response that has several; nil for a request and for a
	// response with at most one.
	Choices []Choice
	pieces  []piece
	twice   []wire.Span // fields that repeat the texts
}

// Choice is one of the alternatives of a response.
type Choice struct {
	From, To  int  // its texts are Found.Texts[From:To]
	ToolCalls bool // it calls tools
}

// InRequest finds the texts of a client's body in any format. kind is the request type, which
// matters only for ToolCall and AgentCall. A body that is not JSON has no texts.
func InRequest(kind string, body []byte, scope Scope) Found {
	r := reader(kind, body)
	r.value(place{message: beside, root: true})
	return r.choose(scope)
}

// InResponse finds the texts of a response, in any format.
func InResponse(kind string, body []byte, scope Scope) Found {
	r := reader(kind, body)
	r.response = true
	r.value(r.origin(kind))
	return r.choose(scope)
}

// Empty reports whether a client's body contains nothing that a guardrail could judge: neither
// texts nor parts that it may have to reject.
func Empty(kind string, body []byte) bool {
	r := reader(kind, body)
	r.value(place{message: beside, root: true})
	return len(r.pieces) == 0 && !r.unread && r.d.Err() == nil
}

func reader(kind string, body []byte) *reading {
	return &reading{body: body, d: wire.NewDecoder(body), tools: kind == ToolCall || kind == AgentCall, agent: kind == AgentCall}
}

// origin returns the initial place of a response.
func (r *reading) origin(kind string) place {
	at := place{root: true}
	if kind == ToolCall {
		at.class = result
	}
	return at
}

// choose returns the pieces of a scope, those of definitions last.
func (r *reading) choose(scope Scope) Found {
	if r.d.Err() != nil {
		return Found{}
	}
	f := Found{twice: r.twice}
	r.dropRepeated()
	for i := range r.pieces {
		p := &r.pieces[i]
		p.last = p.last || r.response
		f.ToolCalls = f.ToolCalls || p.call
		if p.in(scope) || r.tools && p.class == arguments && (scope == "" || scope == LastMessage || scope == AllMessages) {
			f.pieces = append(f.pieces, *p)
		}
	}
	sort.SliceStable(f.pieces, func(i, j int) bool {
		a, b := &f.pieces[i], &f.pieces[j]
		if r.response && a.message != b.message {
			return a.message < b.message
		}
		if a.first != b.first {
			return a.first
		}
		return !a.definition && b.definition
	})
	for i := range f.pieces {
		f.Texts = append(f.Texts, f.pieces[i].text(r.body))
	}
	f.Choices = r.alternatives(f.pieces)
	return f
}

// alternatives returns the choices of a response, with their texts among pieces, which are
// ordered by choice.
func (r *reading) alternatives(pieces []piece) []Choice {
	if r.choices < 2 {
		return nil
	}
	out, at := make([]Choice, r.choices), 0
	for i := range out {
		out[i].From = at
		for at < len(pieces) && pieces[at].message == i {
			at++
		}
		out[i].To = at
	}
	for i := range r.pieces {
		if p := &r.pieces[i]; p.call {
			out[p.message].ToolCalls = true
		}
	}
	return out
}

// dropRepeated removes pieces that repeat others.
func (r *reading) dropRepeated() {
	if !slices.ContainsFunc(r.pieces, func(p piece) bool { return p.again }) {
		return
	}
	texts := map[string]bool{}
	for i := range r.pieces {
		if p := &r.pieces[i]; !p.again {
			texts[p.text(r.body)] = true
		}
	}
	r.pieces = slices.DeleteFunc(r.pieces, func(p piece) bool { return p.again && texts[p.text(r.body)] })
}

// text returns the text of a piece.
func (p *piece) text(body []byte) string {
	raw := p.at.Of(body)
	switch p.form {
	case formObject:
		return readable(raw)
	case formBase64:
		return string(decoded(inside(raw)))
	case formDataURL:
		_, data, _ := dataURL(inside(raw))
		return string(decoded(data))
	}
	if len(raw) == 0 {
		return ""
	}
	t := inside(raw)
	if p.class == arguments {
		return readable(t)
	}
	return string(t)
}

// in reports whether a scope includes the piece.
func (p *piece) in(scope Scope) bool {
	isText := (p.class == text || p.class == other || p.class == result) && !p.definition
	switch scope {
	case AllMessages:
		return isText
	case System:
		return p.system && p.class == text
	case Prompt:
		return p.system && p.class == text && !p.definition
	case ToolArguments:
		return p.class == arguments
	case ToolResults:
		return p.class == result
	case Reasoning:
		return p.class == reasoned
	}
	return isText && p.last
}

// ReplaceTexts returns the body with the texts replaced; a nil text stays unchanged.
func (f *Found) ReplaceTexts(body []byte, texts []*string) []byte {
	edits := make([]wire.Edit, 0, len(texts))
	for i, t := range texts {
		if t == nil || i >= len(f.pieces) || f.pieces[i].at.Absent() || *t == f.Texts[i] {
			continue
		}
		edits = append(edits, wire.Replace(f.pieces[i].at, f.pieces[i].written(body, *t)))
	}
	if len(edits) == 0 {
		return body
	}
	for _, again := range f.twice {
		edits = append(edits, wire.Delete(again))
	}
	return wire.Splice(nil, body, edits...)
}

// written encodes a text as the JSON value that it replaces: an object stays an object, and
// encoded text is encoded again.
func (p *piece) written(body []byte, t string) []byte {
	switch p.form {
	case formBase64:
		return wire.AppendJSONString(nil, base64.StdEncoding.EncodeToString([]byte(t)))
	case formDataURL:
		head, _, _ := dataURL(inside(p.at.Of(body)))
		return wire.AppendJSONString(nil, string(head)+","+base64.StdEncoding.EncodeToString([]byte(t)))
	case formObject:
		if wire.KindOf([]byte(t)) == wire.KindObject && wire.CheckStrict([]byte(t), wire.MaxDepth) == nil {
			return []byte(t)
		}
		return append(wire.AppendJSONString([]byte(`{"text":`), t), '}')
	}
	return wire.AppendJSONString(nil, t)
}
