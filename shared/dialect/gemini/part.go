package gemini

import (
	"bytes"
	"encoding/json"
	"strings"

	"gateway/shared/wire"
)

// part is one part of an answer; values alias the body.
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
	foreign    string // member of a part that only this dialect knows
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

// compact puts JSON on one line. The provider spreads plain answers over many lines, and an
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
