package content

import (
	"bytes"
	"slices"
	"strings"

	"gateway/shared/wire"
)

// reading collects the texts of a body. It is independent of formats: it visits every string,
// and classifies it by the names of the surrounding fields and by the types and roles of their
// objects. Unknown fields are judged.
type reading struct {
	body     []byte
	d        *wire.Decoder
	response bool
	tools    bool // a single tool call or agent message: arguments and results are the conversation
	agent    bool
	pieces   []piece
	next     int // index of the next message
	// choices is the number of alternatives of a response. Their pieces have the index of the
	// choice as their message; other pieces have 0.
	choices int
	unread  bool        // a part cannot be read
	tokens  string      // the field with token ids
	twice   []wire.Span // fields that repeat other texts
	name    [longest]byte
}

// place is the context of a value.
type place struct {
	message    int  // index of its message or choice, or beside
	root       bool // a direct field of the body
	element    bool // a direct field of a message or an item
	system     bool
	definition bool
	attached   bool // a direct field of a document
	parts      bool // a list of parts
	media      bool // below a field of images, audio or vectors
	again      bool // it may repeat another text of the body
	class      class
	path       uint64 // distinguishes fields of an event
}

// beside is the message index of values outside of messages.
const beside = -1

// outside reports whether a place is outside of the messages of a request, or at the root of a
// response.
func (r *reading) outside(at *place) bool {
	if r.response {
		return at.root
	}
	return at.message == beside || at.element
}

// value reads the next value.
func (r *reading) value(at place) {
	switch r.d.Kind() {
	case wire.KindString:
		r.add(r.d.Raw(), at, formText)
	case wire.KindObject:
		r.object(at)
	case wire.KindArray:
		for i := range r.d.Array {
			one := at
			one.path = mix(at.path, uint64(i)+1)
			from := len(r.pieces)
			if r.d.Kind() != wire.KindObject {
				r.value(one)
			} else if o := r.object(one); o.typed && !o.turn && at.parts && !at.again && len(r.pieces) == from {
				r.addNonText(&at)
			}
		}
	default:
		r.d.Skip()
	}
}

// add records the value that was just read.
func (r *reading) add(raw []byte, at place, f form) {
	if raw == nil {
		return
	}
	end := r.d.Offset()
	r.addSpan(wire.Span{Start: end - len(raw), End: end}, at, f)
}

// addSpan records a part of the body.
func (r *reading) addSpan(span wire.Span, at place, f form) {
	r.pieces = append(r.pieces, piece{
		message: at.message, last: at.message == beside && !at.system && !at.definition, system: at.system || at.definition, definition: at.definition,
		again: at.again, media: at.media, class: at.class, form: f, at: span, path: at.path,
	})
}

// addNonText records a part that is not text.
func (r *reading) addNonText(at *place) {
	r.pieces = append(r.pieces, piece{message: at.message, last: at.message == beside, class: other})
}

// inside returns the text between the quotes of a string.
func inside(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	return wire.AppendUnquoted(nil, raw)
}

// exemptIf reads a value and exempts strings that ok accepts.
func (r *reading) exemptIf(ok func([]byte) bool, at place) {
	switch r.d.Kind() {
	case wire.KindString:
		if raw := r.d.Raw(); raw != nil && !ok(inside(raw)) {
			r.add(raw, at, formText)
		}
	case wire.KindArray:
		for range r.d.Array {
			r.exemptIf(ok, at)
		}
	default:
		r.value(at)
	}
}

// all reads every string of a value with fields that the client names. With keys, the model
// reads the names as well.
func (r *reading) all(at place, keys bool) {
	switch r.d.Kind() {
	case wire.KindArray:
		for range r.d.Array {
			r.all(at, keys)
		}
	case wire.KindObject:
		if keys {
			r.add(r.d.Raw(), at, formObject)
			return
		}
		for range r.d.Object {
			r.all(at, keys)
		}
	default:
		r.value(at)
	}
}

// encoded reads values that may be base64. Their object may still declare that they are text.
func (r *reading) encoded(at place, as form) {
	switch r.d.Kind() {
	case wire.KindString:
		switch raw := r.d.Raw(); {
		case raw == nil:
		case isBase64(inside(raw)), isLenientBase64(inside(raw)) && !isAddress(inside(raw)) && !isDataURL(inside(raw)):
			r.add(raw, at, as)
		default:
			r.address(raw, at)
		}
	case wire.KindArray:
		for range r.d.Array {
			r.encoded(at, as)
		}
	default:
		r.value(at)
	}
}

// address records a string unless it is a URL without text.
func (r *reading) address(raw []byte, at place) {
	s := inside(raw)
	if head, data, ok := dataURL(s); ok {
		kind := string(head[len("data:"):])
		is := contentOf(begin(data))
		r.unread = r.unread || is == document
		if _, ok = decodedText(data); ok || isTextual(kind) || isUTF16(begin(data)) && !isMedia(kind) {
			r.add(raw, at, formDataURL)
		} else {
			r.unread = r.unread || is == unknown && !isMedia(kind)
		}
		return
	}
	if isDataURL(s) || !isAddress(s) {
		r.add(raw, at, formText)
	}
}

// addresses reads values that may be URLs.
func (r *reading) addresses(at place) {
	switch r.d.Kind() {
	case wire.KindString:
		if raw := r.d.Raw(); raw != nil {
			r.address(raw, at)
		}
	case wire.KindArray:
		for range r.d.Array {
			r.addresses(at)
		}
	default:
		r.value(at)
	}
}

// whole reads an object as one text, and any other value as usual.
func (r *reading) whole(at place, call bool) {
	from := len(r.pieces)
	if r.d.Kind() == wire.KindObject {
		r.add(r.d.Raw(), at, formObject)
	} else {
		r.value(at)
	}
	for i := from; call && i < len(r.pieces); i++ {
		r.pieces[i].call = true
	}
}

// messages reads a list of messages or items. Parts and texts in its place form the last
// message.
func (r *reading) messages(at place) {
	from, base, n, turns := len(r.pieces), r.next, 0, false
	at.element, at.root = true, false
	switch r.d.Kind() {
	case wire.KindArray:
		for range r.d.Array {
			at.message = base + n
			n++
			r.next = base + n
			at.path = mix(at.path, uint64(n))
			before := len(r.pieces)
			switch r.d.Kind() {
			case wire.KindObject:
				o := r.object(at)
				turns = turns || o.turn
				if o.typed && len(r.pieces) == before && !o.turn {
					r.addNonText(&at)
				}
			case wire.KindString:
				r.value(at)
			default:
				r.d.Skip()
				r.addNonText(&at)
			}
		}
	default:
		at.message, r.next = base, base+1
		r.value(at)
	}
	last := base // the last message that is not empty: empty messages are not sent
	for i := from; i < len(r.pieces); i++ {
		if p := &r.pieces[i]; len(p.at.Of(r.body)) > len(`""`) {
			last = max(last, p.message)
		}
	}
	for i := from; i < len(r.pieces); i++ {
		p := &r.pieces[i]
		p.last = !turns || p.message == last
	}
}

// object is the classification of an object.
type object struct {
	typed bool // it has a type
	turn  bool // it is a message or an item
}

// object reads an object. Its type and role may follow its texts.
func (r *reading) object(at place) (o object) {
	from := len(r.pieces)
	var role, kind, format string
	var thought, repeats bool
	var index uint64
	var echoes []wire.Span // pieces with instructions that may repeat the request
	for key := range r.d.Object {
		name := nameOf(r.name[:0], key)
		does := treatmentOf(name, key)
		sub := at
		sub.root, sub.element, sub.attached = false, false, false
		sub.parts = string(name) == "content" || string(name) == "parts"
		sub.path = hash(at.path, name)
		sub.media = at.media || isMediaName(name)
		if !r.response && at.class != arguments && r.d.Kind() == wire.KindArray && isTokens(string(name), *r.d) {
			r.unread, r.tokens = true, string(key)
		}
		if does == judged && !isFieldName(key) {
			r.addSpan(r.d.KeySpan(), sub, formText)
		}
		switch {
		case r.d.Kind() == wire.KindNumber:
			if bytes.HasSuffix(name, []byte("index")) {
				index = hash(index, r.d.Raw())
			}
		case does == discriminator && r.d.Kind() == wire.KindString:
			to := &kind
			if string(name) == "role" {
				to = &role
			}
			if raw := r.d.Raw(); raw != nil {
				if *to = string(inside(raw)); !isIdentifier([]byte(*to)) {
					r.add(raw, sub, formText)
				}
			}
		case string(name) == "thought" && r.d.Kind() == wire.KindBool:
			thought = r.d.Bool()
		case string(name) == "parts" && at.element:
			o.turn = true
			r.value(sub)
		case r.response && at.root && string(name) == "object" && r.d.Kind() == wire.KindString:
			if raw := r.d.Raw(); raw != nil {
				if repeats = repeats || repeatsRequest(string(inside(raw))); !isIdentifier(inside(raw)) {
					r.add(raw, sub, formText)
				}
			}
		case r.response && at.root && string(name) == "instructions":
			first := len(r.pieces)
			r.value(sub)
			echoes = append(echoes, wire.Span{Start: first, End: len(r.pieces)})
		case r.response && at.root && echoed[string(name)] && (string(name) != "text" && string(name) != "reasoning" || r.d.Kind() == wire.KindObject):
			r.d.Skip()
		case (string(name) == "mimetype" || string(name) == "mediatype") && r.d.Kind() == wire.KindString:
			raw := r.d.Raw()
			if raw == nil {
				return o
			}
			if format = string(inside(raw)); !isIdentifier([]byte(format)) {
				r.add(raw, sub, formText)
			}
		case does == identifier && string(name) == "name" && at.attached:
			r.value(sub)
		case does == identifier && string(name) == "name" && at.element:
			before := len(r.pieces)
			r.value(sub)
			for i := before; i < len(r.pieces); i++ {
				r.pieces[i].name = true
			}
		default:
			r.field(does, string(name), &at, sub)
		}
	}
	o.typed = kind != ""
	o.turn = o.turn || role != "" || kind == "message" || kind == "item_reference" || isCall(kind) || isResult(kind) || isThought(kind)
	// The class depends on what makes a part of a turn, never on a field that any object can
	// have: an object with a role is a turn, and its sender's words are text.
	part := !at.root && role == ""
	sent := role != "" && role != "assistant" && role != "model" && role != "chatbot" && role != "tool" && role != "function"
	end := from
	for i := from; i < len(r.pieces); i++ {
		p := r.pieces[i]
		if repeats && slices.ContainsFunc(echoes, func(s wire.Span) bool { return s.Start <= i && i < s.End }) {
			continue
		}
		if p.name {
			// The name of a tool is exempt; that of a participant is text.
			of := role != "" && role != "tool" && role != "function"
			if p.name, p.first = false, of; !of && isName(inside(p.at.Of(r.body))) {
				continue
			}
		}
		if (p.form == formEncoded || p.form == formMade) && !r.settle(&p, kind, format) {
			continue
		}
		p.path += index
		switch {
		case p.class == text && (role == "tool" || role == "function" || part && isResult(kind)):
			p.class = result
		case p.class == text && part && (thought || isThought(kind)):
			p.class = reasoned
		case p.class == text && part && isCall(kind):
			p.class = arguments
		case sent && (p.class == reasoned || p.class == arguments):
			p.class = text
		}
		if role == "system" || role == "developer" {
			p.system = true
		}
		r.pieces[end] = p
		end++
	}
	r.pieces = r.pieces[:end]
	return o
}

// settle decides how to judge a value of a base64 field once the type of its object is known:
// as text, as base64 of a text, or not at all.
func (r *reading) settle(p *piece, kind, format string) bool {
	s := inside(p.at.Of(r.body))
	switch {
	case kind == "text", p.form == formMade && kind != "image_generation_call":
		p.form = formText
		return true
	case len(s) == 0:
		return false
	}
	is, media := contentOf(begin(s)), p.media || isMedia(format) || isMediaType(kind)
	r.unread = r.unread || is == document // also an escaped one
	if _, ok := decodedText(s); ok || isTextual(format) || !media && isUTF16(begin(s)) {
		p.form = formBase64
		return true
	}
	if isMedia(format) {
		return false
	}
	if is == unknown && (bytes.ContainsAny(s, " \t") || !media && (len(s) < shortBinary || isHex(s))) {
		p.form = formText // a sentence, a word or a digest
		return true
	}
	r.unread = r.unread || is == unknown && !media && p.class != reasoned && !isThought(kind)
	return false
}

// isMedia reports whether a media type is that of an image or of audio.
func isMedia(kind string) bool {
	family, of, _ := strings.Cut(strings.ToLower(kind), "/")
	return (family == "image" || family == "audio" || family == "video") && !strings.HasPrefix(of, "svg")
}

func isCall(kind string) bool {
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "tool_use") || strings.Contains(kind, "arguments") || strings.HasPrefix(kind, "input_json") ||
		strings.Contains(kind, "_call_code") || strings.Contains(kind, "call_input")
}

func isResult(kind string) bool {
	return strings.HasSuffix(kind, "_output") || strings.HasSuffix(kind, "_result")
}

func isThought(kind string) bool {
	return strings.Contains(kind, "reasoning") || strings.Contains(kind, "thinking")
}

// field reads the value of a field by its treatment. at is the place of its object.
func (r *reading) field(does treatment, name string, at *place, sub place) {
	kind := r.d.Kind()
	switch does {
	case identifier:
		r.exemptIf(isIdentifier, sub)
	case address:
		r.addresses(sub)
	case encoded:
		if at.attached && kind == wire.KindObject { // a document whose fields the client names
			r.whole(sub, false)
			return
		}
		if r.agent && kind != wire.KindString {
			r.data(sub)
			return
		}
		r.encoded(sub, formEncoded)
	case opaque:
		r.exemptIf(isOpaque, sub)
	case unsent:
		// Clients of MCP servers show what results contain beside their content.
		if !r.outside(at) && !r.agent || r.tools && r.response && name == "meta" && !r.agent {
			r.value(sub)
		}
	case repeated:
		if !r.response {
			r.value(sub)
			return
		}
		start := r.d.KeySpan().Start
		if r.d.Raw() != nil {
			r.twice = append(r.twice, wire.Span{Start: start, End: r.d.Offset()})
		}
	case blocks:
		if !r.response {
			r.value(sub)
			return
		}
		start := r.d.KeySpan().Start
		sub.again = true
		r.value(sub)
		r.twice = append(r.twice, wire.Span{Start: start, End: r.d.Offset()})
	case secret:
		if !at.definition {
			r.value(sub)
		}
	case instruction:
		sub.system = sub.system || r.outside(at) && !r.response
		r.value(sub)
	case definition:
		sub.definition = true
		if kind == wire.KindString {
			r.exemptIf(isIdentifier, sub)
			return
		}
		r.value(sub)
	case schema:
		switch {
		case at.definition:
			r.whole(sub, false)
		case name == "parameters" && (at.message != beside || r.response):
			sub.class = arguments
			r.whole(sub, true)
		default:
			r.value(sub)
		}
	case list:
		switch {
		case r.response && (at.root || name != "input"), name != "input" && at.message != beside:
			r.value(sub)
		case name == "input" && (at.message != beside || r.response):
			sub.class = arguments
			r.whole(sub, true)
		default:
			r.messages(sub)
		}
	case choice:
		if r.response && at.root && kind == wire.KindArray {
			for i := range r.d.Array {
				sub.message = i
				r.choices = max(r.choices, i+1)
				r.value(sub)
			}
			return
		}
		r.value(sub)
	case callArguments:
		sub.class = arguments
		r.whole(sub, true)
	case callResult:
		if !(r.response && at.root) {
			sub.class = result
		}
		if name == "result" && kind == wire.KindString {
			r.encoded(sub, formMade)
			return
		}
		r.value(sub)
	case structure:
		if kind == wire.KindObject && (r.tools || !r.outside(at) && !at.root) {
			sub.class = result
			r.whole(sub, false)
			return
		}
		if kind == wire.KindObject {
			sub.root = r.response && at.root // the response of an event
		}
		r.value(sub)
	case reasoning:
		if kind == wire.KindString && !r.response && at.message == beside {
			r.exemptIf(isIdentifier, sub) // the model's reasoning effort
			return
		}
		if r.response || at.message != beside {
			sub.class = reasoned
		}
		r.value(sub)
	case free:
		if name == "toolresults" {
			sub.class = result
		}
		r.all(sub, name == "documents" || name == "toolresults")
	case delivery:
		if !r.agent {
			r.value(sub)
		}
	case attached:
		sub.attached = true
		r.value(sub)
	default:
		if name == "text" && at.root && kind == wire.KindObject {
			sub.definition = true // the format of a response
		}
		r.value(sub)
	}
}

// data reads a structure of an agent, which replaces a text: entirely, or a list entry by
// entry.
func (r *reading) data(at place) {
	at.class = result
	if r.d.Kind() == wire.KindArray {
		for range r.d.Array {
			r.data(at)
		}
		return
	}
	r.whole(at, false)
}

// mix and hash distinguish the fields of events: FNV-1a.
func mix(h, v uint64) uint64 { return (h ^ v) * 1099511628211 }

func hash(h uint64, s []byte) uint64 {
	for _, c := range s {
		h = mix(h, uint64(c))
	}
	return mix(h, 0xff)
}
