package responses

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/wire"
)

// text reads a string; anything else is taken as it is written.
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

// typed reports whether the elements of the list at d are parts, which have a type, and not the
// results of a hosted tool.
func typed(d wire.Decoder) bool {
	all := true
	for range d.Array {
		if d.Kind() != wire.KindObject {
			return true // it is rejected where it is read
		}
		has := false
		for key := range d.Object {
			has = has || string(key) == "type"
			d.Skip()
		}
		all = all && has
	}
	return all
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
		if typed(*d) {
			it.output.Parts = it.list()
			return
		}
		fallthrough
	default: // of hosted tools
		it.output.Plain = true
		it.output.Parts = []chat.Part{{Kind: chat.Text, Text: string(d.Raw())}}
	}
}

// part reads one part of a content list. One of an unknown type is unchanged.
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
			if address := d.Str(); strings.HasPrefix(address, "data:") {
				data = address
				openai.SetFileData(d, data, &media)
			} else {
				media.URL = address
			}
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
		case "prompt_cache_breakpoint":
			p.Cache = openai.ReadBreakpoint(d, it.q.r)
		case "annotations", "logprobs":
			// Responses of the gateway and the provider carry them; they are not read back.
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
