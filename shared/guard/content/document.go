package content

import (
	"bytes"
	"encoding/base64"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"gateway/shared/wire"
)

// Document is a body as guardrails read it.
type Document struct {
	JSON []byte // nil if the body has no text
	// IsBody is set if JSON is the body itself, so that changes can be written back.
	IsBody bool
	// Unreadable is set if the body contains a document or a truncated binary message that cannot
	// be read and is not in JSON.
	Unreadable bool
}

// ReadsASCII reports whether a media type declares an encoding that reads ASCII as UTF-8 does. With
// any other, such as UTF-7, a reader finds other texts in a body than a guardrail.
func ReadsASCII(contentType string) bool {
	if contentType == "" {
		return true
	}
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return !strings.Contains(strings.ToLower(contentType), "charset")
	}
	switch set := strings.ToLower(params["charset"]); {
	case set == "", set == "utf-8", set == "utf8", set == "us-ascii", set == "ascii":
		return true
	default: // their bytes above ASCII are seldom UTF-8, and cannot be read then
		return strings.HasPrefix(set, "iso-8859-") || strings.HasPrefix(set, "windows-125")
	}
}

// Read returns the document of a body of any media type. ok is false for a body that may
// contain text and cannot be read.
func Read(contentType string, body []byte) (doc Document, ok bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = ""
	}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return Document{}, true
	case !ReadsASCII(contentType):
		return Document{}, false
	case kind == "application/vnd.amazon.eventstream":
		var j joined
		ok := readFrames(body, &j)
		return j.read(), ok
	case kind == "text/event-stream" && !isJSON(body): // no event begins like JSON
		var j joined
		ok := readEvents(body, &j)
		return j.read(), ok
	case isMedia(kind) && !isJSON(body) && (!utf8.Valid(body) || hasControls(body)):
		return Document{}, true // images and audio are not judged in conversations either
	case isJSON(body):
		if wire.KindOf(bytes.TrimLeft(body, " \t\r\n")) == wire.KindObject {
			return Document{JSON: body, IsBody: true}, true
		}
		var j joined
		readArray(body, &j)
		return j.read(), true
	case !utf8.Valid(body):
		return Document{}, false
	}
	var j joined
	if readLines(body, &j) {
		return j.read(), true
	}
	if hasControls(body) {
		return Document{}, false
	}
	return Document{JSON: append(wire.AppendJSONString([]byte(`{"choices":[{"text":`), body), `}]}`...)}, true
}

// IsJSON reports whether a body is one JSON value.
func IsJSON(body []byte) bool { return isJSON(body) }

// readFrames reads events in the binary framing of AWS.
func readFrames(body []byte, j *joined) (ok bool) {
	var p wire.EventStreamParser
	p.MaxMessage = len(body)
	err := p.Feed(body, func(event string, data []byte) error {
		ok = true
		return j.event(event, data)
	})
	j.unread = j.unread || p.End(nil) != nil // the text of an incomplete message
	return ok && err == nil
}

// readEvents reads server-sent events.
func readEvents(body []byte, j *joined) (ok bool) {
	p := wire.SSEParser{MaxEvent: len(body) + 1}
	err := p.Feed(body, j.event)
	if err == nil {
		err = p.End(j.event)
	}
	return err == nil
}

// readArray reads a list of events or objects, or a single value.
func readArray(body []byte, j *joined) {
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindArray {
		j.add(body, origin{parent: none, end: len(body)})
		return
	}
	for range d.Array {
		raw := d.Raw()
		j.add(raw, origin{parent: none, end: d.Offset()})
	}
}

// readLines reads lines of JSON.
func readLines(body []byte, j *joined) (ok bool) {
	end := -1
	for row := range bytes.SplitSeq(body, []byte{'\n'}) {
		end += len(row) + 1
		line := bytes.TrimSpace(row)
		if len(line) == 0 {
			continue
		}
		if wire.KindOf(line) != wire.KindObject || !isJSON(line) {
			return false
		}
		j.add(line, origin{parent: none, end: end - (len(row) - len(bytes.TrimRight(row, " \t\r")))})
		for at := range j.texts {
			j.texts[at] = append(j.texts[at], '\n') // the rows are independent
		}
	}
	return true
}

// joined collects the texts of events. The texts of the same field in consecutive events are
// one text, since providers split texts anywhere.
type joined struct {
	order []fieldOf
	texts map[fieldOf][]byte
	// unread is set if an event has a document that cannot be read.
	unread bool
	// track records where the texts come from, so that changes can be written back.
	track    bool
	sources  []source
	segments map[fieldOf][]segment
	events   []int // source of each event of a framing, or none for an event without texts
}

// fieldOf identifies a field of events.
type fieldOf struct {
	path  uint64
	class class
}

// event adds an event. An event that is not JSON is a text.
func (j *joined) event(_ string, data []byte) error {
	next := none
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && string(trimmed) != "[DONE]" {
		next = len(j.sources)
		j.add(trimmed, origin{parent: none})
	}
	if j.track {
		j.events = append(j.events, next)
	}
	return nil
}

// add adds the texts of an event.
func (j *joined) add(data []byte, from origin) {
	if j.texts == nil {
		j.texts, j.segments = map[fieldOf][]byte{}, map[fieldOf][]segment{}
	}
	n := len(j.sources)
	if j.track {
		j.sources = append(j.sources, source{origin: from, raw: bytes.Clone(data)})
	}
	if !isJSON(data) {
		j.text(fieldOf{class: text}, string(data), n, piece{})
		return
	}
	r := reading{body: data, d: wire.NewDecoder(data), response: true}
	r.value(place{root: true})
	r.dropRepeated()
	j.unread = j.unread || r.unread
	if j.track {
		j.sources[n].twice = r.twice
	}
	for i := range r.pieces {
		p := &r.pieces[i]
		switch t := p.text(data); {
		case p.class == other:
		case p.form == formBase64 && wire.KindOf([]byte(t)) == wire.KindObject && isJSON([]byte(t)):
			j.add([]byte(t), origin{parent: n, piece: *p}) // an event within the frame of another
		default:
			j.text(fieldOf{p.path, p.class}, t, n, *p)
		}
	}
}

// text adds a text, which is a piece of a source.
func (j *joined) text(at fieldOf, t string, from int, p piece) {
	if _, ok := j.texts[at]; !ok {
		j.order = append(j.order, at)
	}
	if begin := len(j.texts[at]); j.track {
		j.segments[at] = append(j.segments[at], segment{source: from, piece: p, span: wire.Span{Start: begin, End: begin + len(t)}})
	}
	j.texts[at] = append(j.texts[at], t...)
}

// read returns the collected document.
func (j *joined) read() Document { return Document{JSON: j.document(), Unreadable: j.unread} }

// document returns the texts in the format of chat completions.
func (j *joined) document() []byte {
	var content, thoughts, calls []byte
	for _, at := range j.order {
		t := j.texts[at]
		switch at.class {
		case arguments:
			calls = append(wire.AppendJSONString(append(calls, `,{"type":"function","function":{"arguments":`...), t), `}}`...)
		case reasoned:
			thoughts = append(thoughts, t...)
		case result:
			content = append(wire.AppendJSONString(append(content, `,{"type":"tool_result","text":`...), t), '}')
		default:
			content = append(wire.AppendJSONString(append(content, `,{"type":"text","text":`...), t), '}')
		}
	}
	out := []byte(`{"choices":[{"message":{"role":"assistant","content":[`)
	out = append(out, bytes.TrimPrefix(content, []byte{','})...)
	out = append(out, `],"tool_calls":[`...)
	out = append(out, bytes.TrimPrefix(calls, []byte{','})...)
	out = append(out, `],"reasoning_content":`...)
	return append(wire.AppendJSONString(out, thoughts), `}}]}`...)
}

// shortBinary is the length up to which base64 that decodes to no known format is judged as
// text: it is too short for a document.
const shortBinary = 64

// content classifies bytes by their format.
type content uint8

const (
	unknown  content = iota
	document         // a format that may contain text and that no check reads: PDF, archives, Office
	medium           // an image, audio or video
)

// HasUnreadable reports whether a body may contain text that cannot be read: a document in a binary
// format, or token ids instead of a text of a request. kind is as for InRequest and InResponse;
// response is true for a response. field names the field with token ids; it is empty for a
// document.
func HasUnreadable(kind string, body []byte, answer bool) (field string, unread bool) {
	r := reader(kind, body)
	at := place{message: beside, root: true}
	if r.response = answer; answer {
		at = r.origin(kind)
	}
	r.value(at)
	return r.tokens, r.unread && r.d.Err() == nil
}

// isTokens reports whether a field of a request contains token ids: numbers instead of a text.
// d is at its value; name is the normalized name of the field.
func isTokens(name string, d wire.Decoder) bool {
	if name != "prompt" && name != "input" && !strings.HasSuffix(name, "tokenids") {
		return false
	}
	return hasNumber(&d)
}

// hasNumber reports whether an array, at any depth, has a number as an element.
func hasNumber(d *wire.Decoder) (found bool) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return false
	}
	for range d.Array {
		if found = found || d.Kind() == wire.KindNumber; found || d.Kind() != wire.KindArray {
			d.Skip()
			continue
		}
		found = hasNumber(d)
	}
	return found
}

// ReadFile returns the text of an uploaded file. ok is false for a file that may contain text
// and cannot be read. Images and audio have no text; media states that the receiver reads the
// file as such, and contentType is its declared type.
func ReadFile(contentType string, file []byte, media bool) (text string, ok bool) {
	is := contentOf(file)
	switch {
	case is == document:
		return "", false
	case isUTF16(file):
		return string(decodeUTF16(file)), true
	case isPlain(file):
		return string(file), true
	}
	return "", is == medium || media || isMedia(contentType)
}

// begin decodes the beginning of base64.
func begin(s []byte) []byte {
	const most = 704 // decodes to more than the 512 bytes that identify a format
	plain := alphabet(s[:min(len(s), 2*most)])
	plain = plain[:min(len(plain), most)]
	if len(plain)%4 == 1 {
		plain = plain[:len(plain)-1]
	}
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(plain)))
	n, _ := base64.RawStdEncoding.Decode(out, plain)
	return out[:n]
}

// contentOf classifies bytes by their beginning.
func contentOf(b []byte) content {
	// Readers of PDF accept bytes before its header.
	if bytes.Contains(b[:min(len(b), 1024)], []byte("%PDF-")) {
		return document
	}
	for _, magic := range [...]string{"PK\x03\x04", "PK\x05\x06", "\xd0\xcf\x11\xe0", "7z\xbc\xaf", "BZh", "\x28\xb5\x2f\xfd", "\xfd7zXZ", "\xffWPC", "PAR1", "SQLite format 3", "{\\rtf"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			return document
		}
	}
	for _, magic := range [...]string{"fLaC", "#!AMR", "II*\x00", "MM\x00*", "caff", "FORM", "FLV", "\x00\x00\x00\x0cjP  ", "\x00\x00\x00\x0cJXL ", "\xff\x0a"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			return medium
		}
	}
	if len(b) > 8 && string(b[4:8]) == "ftyp" { // MP4, HEIC, AVIF
		return medium
	}
	kind := http.DetectContentType(b)
	switch {
	case isMedia(kind), kind == "application/ogg":
		return medium
	case kind == "application/octet-stream", strings.HasPrefix(kind, "text/"), strings.HasPrefix(kind, "font/"):
		return unknown
	}
	return document
}

// isUTF16 reports whether bytes begin like text in UTF-16.
func isUTF16(b []byte) bool {
	return len(b) >= 4 && len(b)%2 == 0 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff)
}

// mediaNames are parts of the names of fields below which providers read images, audio or
// vectors.
var mediaNames = [...]string{"audio", "image", "video", "mask", "embedding"}

// isMediaName reports whether a field with a normalized name contains images, audio or vectors.
func isMediaName(name []byte) bool {
	for _, part := range mediaNames {
		if bytes.Contains(name, []byte(part)) {
			return true
		}
	}
	return false
}

// isMediaType reports whether the type of an object is that of an image or audio.
func isMediaType(kind string) bool {
	return strings.Contains(kind, "image") || strings.Contains(kind, "audio") || strings.Contains(kind, "video")
}
