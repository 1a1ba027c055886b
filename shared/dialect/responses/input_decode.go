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
		q.r.Messages = []chat.Message{{Role: chat.User, Plain: true, Parts: []chat.Part{{Kind: chat.Text, Text: d.Str()}}}}
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
	// spoke says that the item before was a message of the assistant: another one
	// begins a new turn.
	spoke bool
}

// item is one item while it is read: the members may come in any order.
type item struct {
	q  *requestDecoder
	at int

	kind, role, id, callID, name string
	arguments, input             string
	hasContent, hasOutput        bool
	plain                        bool
	parts                        []chat.Part // content
	output                       chat.ToolResult
	summary, thoughts            []string
	encrypted                    string
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
	case "status": // our own answers and the provider's carry it
	default:
		it.unknown = append(it.unknown, string(key))
	}
}

// text reads a string; anything else as it is written.
func text(d *wire.Decoder) string {
	if d.Kind() == wire.KindString {
		return d.Str()
	}
	return string(d.Raw())
}

// optString reads a string; anything else counts as absent.
func optString(d *wire.Decoder) string {
	if d.Kind() != wire.KindString {
		d.Skip()
		return ""
	}
	return d.Str()
}

// texts reads the text of each element of a list of parts.
func texts(d *wire.Decoder) (out []string) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return nil
	}
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		for key := range d.Object {
			if string(key) == "text" {
				out = append(out, optString(d))
			}
		}
	}
	return out
}

// content reads the content of a message, or the thoughts of a reasoning item.
func (it *item) content() {
	d := it.q.d
	it.hasContent = true
	switch d.Kind() {
	case wire.KindString:
		it.plain = true
		it.parts = []chat.Part{{Kind: chat.Text, Text: d.Str(), At: place(it.at, -1)}}
	case wire.KindArray:
		it.parts = it.list()
	default:
		if it.role != "" || it.kind == "message" {
			d.Fail("must be a string or a list of parts")
		}
		d.Skip()
	}
}

func (it *item) list() []chat.Part {
	var parts []chat.Part
	for i := range it.q.d.Array {
		if p := it.part(i); p.Kind != 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// result reads the output of a call: text, or a list of parts.
func (it *item) result() {
	d := it.q.d
	it.hasOutput = true
	switch d.Kind() {
	case wire.KindString:
		it.output.Plain = true
		it.output.Parts = []chat.Part{{Kind: chat.Text, Text: d.Str()}}
	case wire.KindArray:
		it.output.Parts = it.list()
	default: // of hosted tools
		it.output.Plain = true
		it.output.Parts = []chat.Part{{Kind: chat.Text, Text: string(d.Raw())}}
	}
}

// part reads one part of a content list. One of an unknown type is kept as it is.
func (it *item) part(at int) chat.Part {
	d := it.q.d
	start := *d
	p := chat.Part{At: place(it.at, at)}
	var media chat.Media
	var unknown []string
	kind, data := "", ""
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
		case "text", "refusal":
			p.Text = d.Str()
		case "image_url":
			it.imageURL(&media)
		case "detail":
			media.Detail = optString(d)
		case "file_id":
			media.FileID = d.Str()
		case "file_url":
			media.URL = d.Str()
		case "filename":
			media.Name = d.Str()
		case "file_data":
			if data = d.Str(); data != "" {
				openai.SetFileData(d, data, &media)
			}
		case "input_audio":
			audio(d, &media)
		case "cache_control":
			p.Cache = openai.ReadCacheMarker(d)
		case "annotations", "logprobs":
			// Our own answers and the provider's carry them; they are not read back.
		default:
			unknown = append(unknown, string(key))
		}
	}
	if d.Err() != nil {
		return p
	}
	switch kind {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		p.Kind = chat.Text
	case "refusal":
		p.Kind = chat.Refusal
	case "input_image":
		p.Kind, p.Media = chat.Image, &media
		if media.MIME == "application/pdf" {
			p.Kind = chat.Document
		}
	case "input_file":
		p.Kind, p.Media = chat.Document, &media
		if strings.HasPrefix(media.MIME, "image/") {
			p.Kind = chat.Image
		}
	case "input_audio":
		p.Kind, p.Media = chat.Audio, &media
	case "":
		openai.Missing(d, &start, "type")
	default:
		probe := start
		return chat.Part{Kind: chat.Foreign, Type: kind, Origin: name, Raw: clone(probe.Raw()), Cache: p.Cache, At: p.At}
	}
	if p.Media != nil && p.Media.URL == "" && p.Media.Data == "" && p.Media.FileID == "" {
		openai.Missing(d, &start, map[string]string{"input_image": "image_url or file_id", "input_file": "file_id, file_data or file_url", "input_audio": "input_audio"}[kind])
	}
	for _, member := range unknown {
		it.q.r.Unknown(it.at, p.At, []byte(member))
	}
	return p
}

// imageURL reads a data: or web address; some clients send {url, detail}.
func (it *item) imageURL(media *chat.Media) {
	d := it.q.d
	if d.Kind() != wire.KindObject {
		openai.ReadURL(d, media)
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "url":
			openai.ReadURL(d, media)
		case "detail":
			media.Detail = optString(d)
		}
	}
}

func audio(d *wire.Decoder, media *chat.Media) {
	for key := range d.Object {
		switch string(key) {
		case "data":
			media.Data = d.Str()
		case "format":
			media.Format = d.Str()
		}
	}
}

// add puts a whole item into the conversation.
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
	case "function_call", "custom_tool_call":
		args := it.arguments
		if it.kind == "custom_tool_call" {
			args = wrapText(it.input)
		}
		l.assistant(it, false, chat.Part{Kind: chat.Call, At: place(it.at, -1), Cache: it.cache, Call: &chat.ToolCall{ID: it.callID, Name: it.name, Arguments: args}})
	case "function_call_output", "custom_tool_call_output":
		r := it.output
		r.CallID = it.callID
		p := chat.Part{Kind: chat.Result, At: place(it.at, -1), Cache: it.cache, Result: &r}
		l.next(chat.Message{Role: chat.ToolRole, At: it.at, Parts: []chat.Part{p}})
	case "reasoning":
		l.assistant(it, false, it.reasoned())
	case "item_reference":
		l.assistant(it, false, it.foreign())
	default: // the work of a hosted tool
		l.assistant(it, false, it.foreign())
	}
}

func (it *item) foreign() chat.Part {
	return chat.Part{Kind: chat.Foreign, Type: it.kind, Origin: name, Raw: clone(it.raw), At: place(it.at, -1)}
}

var roles = map[string]chat.Role{"user": chat.User, "system": chat.System, "developer": chat.Developer}

func (l *itemList) message(it *item) {
	if it.role == "assistant" {
		if l.turn >= 0 && l.spoke && !calls(&l.q.r.Messages[l.turn]) {
			l.turn = -1
		}
		l.assistant(it, it.plain, it.parts...)
		l.spoke = true
		return
	}
	l.next(chat.Message{Role: roles[it.role], At: it.at, Parts: it.parts, Plain: it.plain})
}

func calls(m *chat.Message) bool {
	for i := range m.Parts {
		if m.Parts[i].Call != nil {
			return true
		}
	}
	return false
}

// next adds a message that is not the assistant's.
func (l *itemList) next(m chat.Message) {
	l.turn, l.spoke = -1, false
	l.q.r.Messages = append(l.q.r.Messages, m)
}

// assistant adds parts to the assistant's turn.
func (l *itemList) assistant(it *item, plain bool, parts ...chat.Part) {
	l.spoke = false
	if l.turn < 0 {
		l.turn = len(l.q.r.Messages)
		l.q.r.Messages = append(l.q.r.Messages, chat.Message{Role: chat.Assistant, At: it.at, Plain: plain, Parts: parts})
		return
	}
	m := &l.q.r.Messages[l.turn]
	m.Plain = false
	m.Parts = append(m.Parts, parts...)
}

// reasoned makes the part of a reasoning item: signed when its encrypted content
// says who signed it, else only that of a provider that keeps responses.
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

// summaryBreak stands between the parts of a summary in one text.
const summaryBreak = "\n\n"
