package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/events"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// meter reads what accounting need of responses and chunks.
type meter struct {
	m     chat.Meter
	h     head
	found int64
}

// read meters one response or chunk; the error is that of a body that is no JSON
// object.
func (f *meter) read(body []byte) error {
	if readError(body) != nil {
		f.m.Err = inBandError(body)
		return nil
	}
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return errNoObject
	}
	f.h.read(d)
	if d.End() != nil || !f.h.known {
		return d.End()
	}
	f.h.count()
	f.m.ID, f.m.Model = f.h.id, f.h.model
	if f.h.candidates != nil {
		f.candidates(f.h.candidates)
	}
	if f.h.blocked != "" {
		f.m.Finish, f.m.Started, f.m.Complete = f.h.blocked, true, true
	}
	f.m.ReportedTotal = f.h.usage.classes(&f.m.Usage, billed(f.found, &chat.Traits{SignedCalls: eachSearch(f.h.model)}))
	f.m.Mode = f.h.usage.mode
	return nil
}

var errNoObject = errors.New("gemini: no JSON object")

func (f *meter) candidates(raw []byte) {
	d := wire.NewDecoder(raw)
	var c candidate
	for i := range d.Array {
		c.read(d, i)
		f.found = max(f.found, c.searches)
		if len(c.parts) > 2 {
			f.m.Started = true
			f.m.Chunks++
			f.m.OutputBytes += outputLen(c.parts)
		}
		if c.native != "" {
			f.m.Finish, f.m.Started, f.m.Complete = c.native, true, true
		}
	}
}

// outputLen measures the text, reasoning and calls of the parts of a candidate. Media and
// signatures are no text.
func outputLen(parts []byte) (n int64) {
	d := wire.NewDecoder(parts)
	var p part
	for range d.Array {
		p.read(d)
		n += int64(wire.TextLen(p.text) + len(p.callName) + len(p.foreignRaw))
		if p.call {
			n += int64(len(p.arguments()))
		}
	}
	return n
}

// meterPlain reads a plain response: one object, the list of chunks of a stream without
// alt=sse, or the response of an embedding or of :predict.
func meterPlain(body []byte) chat.Meter {
	var f meter
	body = bytes.TrimSpace(body)
	if wire.KindOf(body) == wire.KindArray {
		d := wire.NewDecoder(body)
		for range d.Array {
			if raw := d.Raw(); raw != nil && f.m.Err == nil {
				_ = f.read(raw)
			}
		}
	} else {
		_ = f.read(body)
		if f.m.Err == nil && noCandidates(body) {
			f.m.Err = invalidResponse(nil)
		}
	}
	if f.m.Err == nil {
		f.m.Complete, f.m.Started = true, true
	}
	if f.m.Usage == (pricing.Usage{}) {
		f.m.Usage = predicted(body)
	}
	return f.m
}

// noCandidates reports whether a plain response has an empty list of candidates although its
// prompt was not blocked. The quotes of a key in a JSON string are escaped.
func noCandidates(body []byte) bool {
	const key = `"candidates"`
	at := bytes.Index(body, []byte(key))
	if at < 0 {
		return false
	}
	list, found := bytes.CutPrefix(bytes.TrimLeft(body[at+len(key):], " \t\r\n"), []byte(":"))
	if !found {
		return false
	}
	list, found = bytes.CutPrefix(bytes.TrimLeft(list, " \t\r\n"), []byte("["))
	return found && bytes.HasPrefix(bytes.TrimLeft(list, " \t\r\n"), []byte("]")) && !bytes.Contains(body, []byte(`"blockReason"`))
}

// predicted reads the usage of a response of :predict: the tokens of texts, or the
// generated images.
func predicted(body []byte) (u pricing.Usage) {
	if !bytes.Contains(body, []byte(`"predictions"`)) {
		return u
	}
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return u
	}
	var tokens chat.Opt[int64]
	var pictures int64
	for key := range d.Object {
		if string(key) != "predictions" || d.Kind() != wire.KindArray {
			continue
		}
		for range d.Array {
			raw := d.Raw()
			_ = prediction(wire.NewDecoder(raw), &tokens)
			if bytes.Contains(raw, []byte(`"bytesBase64Encoded"`)) {
				pictures++
			}
		}
	}
	if d.End() != nil {
		return u
	}
	if tokens.Set {
		u.Set(pricing.Input, tokens.Value)
	}
	if pictures > 0 {
		u.Set(pricing.Images, pictures)
	}
	return u
}

// filter passes a stream of this dialect on as it is and meters it.
type filter struct {
	meter
	split events.Splitter
	out   events.Output
	fail  bool // an error was seen
	pass  bool // and it is the provider's own, which has been given out
}

// Meter implements chat.StreamFilter.
func (f *filter) Meter() chat.Meter { return f.m }

// Passed implements chat.StreamFilter.
func (f *filter) Passed() bool { return f.pass }

// Feed implements chat.StreamFilter.
func (f *filter) Feed(in []byte) ([]byte, error) {
	if f.fail {
		return nil, nil
	}
	if err := f.split.Feed(in); err != nil {
		return nil, err
	}
	f.split.Start(&f.out)
	var e events.Event
	for !f.fail && f.split.Next(&e) {
		if f.look(&e) {
			f.out.Add(e.Raw)
		}
	}
	return f.out.Bytes(), nil
}

// look meters one event and reports whether it is for the client.
func (f *filter) look(e *events.Event) bool {
	if len(bytes.TrimSpace(e.Data)) == 0 {
		return true
	}
	if err := f.read(e.Data); err != nil {
		if !f.m.Complete { // data after a complete response is dropped
			f.m.Err, f.fail = upstream.UnreadableFault(err), true
		}
		return false
	}
	f.fail = f.m.Err != nil
	f.pass = f.fail
	return true
}

// End implements chat.StreamFilter.
func (f *filter) End() []byte {
	var e events.Event
	if f.fail || !f.split.Last(&e) {
		return nil
	}
	if !f.look(&e) { // a piece of an event: the stream was cut
		f.m.Err, f.fail = nil, false
		return nil
	}
	if !f.m.Complete && !f.fail {
		return nil
	}
	return append(bytes.TrimRight(append([]byte(nil), e.Raw...), "\r\n"), "\r\n\r\n"...)
}

// part is one part of a response; values alias the body.
type part struct {
	text       []byte // with its quotes; nil when the part is no text
	thought    bool
	signature  string
	callID     string
	callName   string
	args       []byte
	call       bool
	mime       string
	data       []byte // inline data with its quotes
	uri        string
	foreign    string // field of a part that only this dialect knows
	foreignRaw []byte
}

func (p *part) read(d *wire.Decoder) {
	*p = part{}
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "text":
			if d.Kind() == wire.KindString {
				p.text = d.RawStr()
			}
		case "thought":
			p.thought = d.Kind() == wire.KindBool && d.Bool()
		case "thoughtSignature":
			p.signature = optString(d)
		case "functionCall":
			p.call = true
			p.readCall(d)
		case "inlineData":
			p.readData(d)
		case "fileData":
			p.readData(d)
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
			if d.Kind() == wire.KindObject {
				p.foreign = string(key)
				p.foreignRaw = d.Raw()
			}
		}
	}
}

func (p *part) readCall(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "id":
			p.callID = optString(d)
		case "name":
			p.callName = optString(d)
		case "args":
			if d.Kind() == wire.KindObject {
				p.args = d.Raw()
			}
		}
	}
}

func (p *part) readData(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "mimeType":
			p.mime = optString(d)
		case "data":
			if d.Kind() == wire.KindString {
				p.data = d.RawStr()
			}
		case "fileUri":
			p.uri = optString(d)
		}
	}
}

// empty reports whether the part holds nothing but perhaps a signature.
func (p *part) empty() bool {
	return !p.call && len(p.text) <= len(`""`) && p.foreign == "" && p.data == nil && p.uri == ""
}

// image returns the address of a part that is an image, "" for any other.
func (p *part) image() string {
	switch {
	case !strings.HasPrefix(p.mime, "image/"):
		return ""
	case p.data != nil:
		return "data:" + p.mime + ";base64," + string(wire.AppendUnquoted(nil, p.data))
	}
	return p.uri
}

// block returns what has no canonical form as a content block, for lenient clients; nil
// when the part has no such thing.
func (p *part) block() json.RawMessage {
	switch {
	case p.foreign != "":
		b := wire.AppendJSONString([]byte(`{"type":`), p.foreign)
		b = append(append(append(append(b, `,"`...), p.foreign...), `":`...), compact(p.foreignRaw)...)
		return append(b, '}')
	case p.data != nil:
		url := "data:" + p.mime + ";base64," + string(wire.AppendUnquoted(nil, p.data))
		return append(wire.AppendJSONString([]byte(`{"type":"image_url","image_url":{"url":`), url), `}}`...)
	case p.uri != "":
		return append(wire.AppendJSONString([]byte(`{"type":"image_url","image_url":{"url":`), p.uri), `}}`...)
	}
	return nil
}

// arguments of the call as JSON.
func (p *part) arguments() []byte {
	if p.args == nil {
		return []byte("{}")
	}
	return compact(p.args)
}

// compact puts JSON on one line. The provider spreads plain responses over many lines, and an
// event of a stream must not contain a line end.
func compact(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return []byte("null") // not reached: raw was read by the decoder
	}
	return b.Bytes()
}
