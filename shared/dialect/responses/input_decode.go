package responses

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/wire"
)

// input reads the conversation: one text of the user, or items.
func (q *requestDecoder) input() {
	d := q.d
	if d.Kind() == wire.KindString {
		q.r.Messages = []chat.Message{{Role: chat.User, IsString: true, Parts: []chat.Part{{Kind: chat.Text, Text: d.Str()}}}}
		return
	}
	l := itemList{q: q, turn: -1}
	for i := range d.Array {
		it := item{q: q, at: i}
		it.read()
		if d.Err() != nil {
			return
		}
		l.add(&it)
	}
}

// itemList joins items to messages.
type itemList struct {
	q    *requestDecoder
	turn int // index of the assistant's message that items are added to; -1: none
	// afterAssistant means that the item before was a message of the assistant: then another one begins
	// a new turn.
	afterAssistant bool
}

// item is one item while it is read: the fields may come in any order.
type item struct {
	q  *requestDecoder
	at int

	kind, role, id, callID, name string
	namespace                    string
	action                       []byte
	arguments, input             string
	hasContent, hasOutput        bool
	plain                        bool
	parts                        []chat.Part // content
	output                       chat.ToolResult
	summary, thoughts            []string
	encrypted                    string
	resultData, outputFormat     string // of an image
	raw                          []byte
	unknown                      []string
	cache                        chat.Cache
}

func (it *item) read() {
	d := it.q.d
	start := *d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		it.member(key)
	}
	if d.Err() != nil {
		return
	}
	if it.kind == "" {
		if it.kind = "message"; it.role == "" && it.id != "" && !it.hasContent {
			it.kind = "item_reference"
		}
	}
	probe := start
	it.raw = probe.Raw()
	need := func(ok bool, member string) {
		if !ok {
			openai.Missing(d, &start, member)
		}
	}
	switch it.kind {
	case "message":
		need(it.role != "", "role")
		need(it.hasContent, "content")
	case "function_call", "custom_tool_call":
		need(it.callID != "", "call_id")
		need(it.name != "", "name")
	case "function_call_output", "custom_tool_call_output":
		need(it.callID != "", "call_id")
		need(it.hasOutput, "output")
	case "item_reference":
		need(it.id != "", "id")
	}
}

func (it *item) member(key []byte) {
	d := it.q.d
	switch string(key) {
	case "type":
		it.kind = d.Str()
	case "role":
		it.role = d.Str()
		switch it.role {
		case "user", "assistant", "system", "developer":
		default:
			d.Fail("must be user, assistant, system or developer")
		}
	case "id":
		it.id = optString(d)
	case "call_id":
		it.callID = optString(d)
	case "name":
		it.name = optString(d)
	case "namespace":
		it.namespace = optString(d)
	case "action":
		it.action = clone(d.Raw())
	case "arguments":
		it.arguments = text(d)
	case "input":
		it.input = text(d)
	case "content":
		it.content()
	case "output":
		it.result()
	case "summary":
		it.summary = texts(d)
	case "encrypted_content":
		it.encrypted = optString(d)
	case "cache_control":
		it.cache = openai.ReadCacheMarker(d)
	case "result":
		it.resultData = optString(d)
	case "output_format":
		it.outputFormat = optString(d)
	case "status": // answers of the gateway and the provider carry it
	default:
		it.unknown = append(it.unknown, string(key))
	}
}

// add adds a complete item to the conversation.
func (l *itemList) add(it *item) {
	for _, member := range it.unknown {
		if it.kind == "message" || it.kind == "function_call" || it.kind == "function_call_output" || it.kind == "reasoning" {
			l.q.r.Unknown(it.at, -1, []byte(member))
		}
	}
	if it.cache != chat.NoCache && len(it.parts) > 0 {
		it.parts[len(it.parts)-1].Cache = it.cache
	}
	switch it.kind {
	case "message":
		l.message(it)
	case "local_shell_call": // of a tool that the client runs
		id := it.callID
		if id == "" {
			id = it.id
		}
		l.assistant(it, false, chat.Part{Kind: chat.Call, At: place(it.at, -1), Call: &chat.ToolCall{ID: id, Name: "local_shell", Arguments: string(it.action)}})
	case "function_call", "custom_tool_call":
		args := it.arguments
		if it.kind == "custom_tool_call" {
			args = chat.WrapText(it.input)
		}
		l.assistant(it, false, chat.Part{Kind: chat.Call, At: place(it.at, -1), Cache: it.cache, Call: &chat.ToolCall{ID: it.callID, Name: chat.JoinNamespace(it.namespace, it.name), Arguments: args}})
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		r := it.output
		if r.CallID = it.callID; r.CallID == "" {
			r.CallID = it.id
		}
		p := chat.Part{Kind: chat.Result, At: place(it.at, -1), Cache: it.cache, Result: &r}
		l.next(chat.Message{Role: chat.ToolRole, At: it.at, Parts: []chat.Part{p}})
	case "reasoning":
		l.assistant(it, false, it.reasoned())
	case "item_reference":
		l.assistant(it, false, it.foreign())
	default: // the work of a hosted tool
		if p, ok := it.image(); ok {
			l.assistant(it, false, p)
			return
		}
		l.assistant(it, false, it.foreign())
	}
}

func (it *item) foreign() chat.Part {
	return chat.Part{Kind: chat.Foreign, Type: it.kind, Origin: name, Raw: clone(it.raw), At: place(it.at, -1)}
}

var roles = map[string]chat.Role{"user": chat.User, "system": chat.System, "developer": chat.Developer}

func (l *itemList) message(it *item) {
	if it.role == "assistant" {
		if l.turn >= 0 && l.afterAssistant && !calls(&l.q.r.Messages[l.turn]) {
			l.turn = -1
		}
		l.assistant(it, it.plain, it.parts...)
		l.afterAssistant = true
		return
	}
	l.next(chat.Message{Role: roles[it.role], At: it.at, Parts: it.parts, IsString: it.plain})
}

func calls(m *chat.Message) bool {
	for i := range m.Parts {
		if m.Parts[i].Call != nil {
			return true
		}
	}
	return false
}

// next adds a message of anyone but the assistant.
func (l *itemList) next(m chat.Message) {
	l.turn, l.afterAssistant = -1, false
	l.q.r.Messages = append(l.q.r.Messages, m)
}

// assistant adds parts to the assistant's turn.
func (l *itemList) assistant(it *item, plain bool, parts ...chat.Part) {
	l.afterAssistant = false
	if l.turn < 0 {
		l.turn = len(l.q.r.Messages)
		l.q.r.Messages = append(l.q.r.Messages, chat.Message{Role: chat.Assistant, At: it.at, IsString: plain, Parts: parts})
		return
	}
	m := &l.q.r.Messages[l.turn]
	m.IsString = false
	m.Parts = append(m.Parts, parts...)
}

// reasoned returns the part of a reasoning item. It is signed if its encrypted content
// names the signer; otherwise only a provider that stores responses can use it.
func (it *item) reasoned() chat.Part {
	for i := range it.parts {
		it.thoughts = append(it.thoughts, it.parts[i].Text)
	}
	if len(it.summary) == 0 {
		it.summary = it.thoughts
	}
	p := chat.Part{Kind: chat.Reasoned, At: place(it.at, -1), Text: strings.Join(it.summary, summaryBreak)}
	if it.encrypted == "" {
		return p
	}
	return openSigned(p, it.encrypted)
}

// summaryBreak separates the parts of a summary in one text.
const summaryBreak = "\n\n"
