package anthropic

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// block reads one content block of a request.
func (q *requestDecoder) block(message, at int) chat.Part {
	d := q.d
	whole := *d
	var p chat.Part
	var media chat.Media
	var call chat.ToolCall
	var result chat.ToolResult
	kind := ""
	var contentErr error
	var unknown []string
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
		case "text", "thinking":
			p.Text = d.Str()
		case "signature":
			p.Signature = d.Str()
		case "data":
			p.Data = upstream.OptString(d)
		case "cache_control":
			p.Cache = jsonfield.CacheMarker(d)
		case "source":
			q.source(&media)
		case "title":
			media.Name = upstream.OptString(d)
		case "context":
			media.Context = upstream.OptString(d)
		case "citations":
			media.Citations = bytes.Clone(d.Raw())
		case "id":
			call.ID = upstream.OptString(d)
		case "name":
			call.Name = upstream.OptString(d)
		case "input":
			call.Arguments = string(d.Raw())
		case "tool_use_id":
			result.CallID = upstream.OptString(d)
		case "is_error":
			result.IsError = d.Bool()
		case "content":
			contentErr = q.resultContent(&result)
		default:
			if message >= 0 {
				unknown = append(unknown, string(key))
			}
		}
	}
	if d.Err() != nil {
		return p
	}
	switch kind {
	case "text":
		p.Kind, p.Citations = chat.Text, media.Citations
	case "thinking":
		p.Kind, p.Origin = chat.Reasoned, name
	case "redacted_thinking":
		p.Kind, p.Origin = chat.RedactedReasoned, name
	case "image":
		p.Kind, p.Media = chat.Image, &media
	case "document":
		p.Kind, p.Media = chat.Document, &media
	case "tool_use":
		p.Kind, p.Call = chat.Call, &call
		if call.ID == "" || call.Name == "" {
			jsonfield.Missing(d, &whole, "id and name")
		}
	case "tool_result":
		p.Kind, p.Result = chat.Result, &result
		if contentErr != nil {
			d.FailWith(contentErr)
		}
		if result.CallID == "" {
			jsonfield.Missing(d, &whole, "tool_use_id")
		}
	case "":
		jsonfield.Missing(d, &whole, "type")
	default:
		return foreign(&whole, kind, p.Cache)
	}
	if p.Media != nil && p.Media.URL == "" && p.Media.Data == "" && p.Media.FileID == "" {
		return foreign(&whole, kind, p.Cache) // a source that this package does not know
	}
	for _, key := range unknown {
		q.r.Unknown(message, at, []byte(key))
	}
	return p
}

// foreign returns a block that is not interpreted; the decoder is at its beginning.
func foreign(whole *wire.Decoder, kind string, c chat.Cache) chat.Part {
	return chat.Part{Kind: chat.Foreign, Type: kind, Origin: name, Raw: bytes.Clone(whole.Raw()), Cache: c}
}

// source reads where an image or a document is.
func (q *requestDecoder) source(media *chat.Media) {
	d := q.d
	if d.Kind() != wire.KindObject {
		return
	}
	kind := ""
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
		case "media_type":
			media.MIME = d.Str()
		case "data":
			media.Data = d.Str()
		case "url":
			media.URL = d.Str()
		case "file_id":
			media.FileID = d.Str()
		}
	}
	if media.Plain = kind == "text"; media.Plain || media.Data == "" {
		return
	}
	// Other shapes put it into an address, where it would not be checked.
	clean, ok := chat.CleanBase64(media.Data)
	if !ok {
		d.Fail("needs data in base64")
		return
	}
	media.Data = clean
}

// resultContent reads the content of a tool_result. The error only counts if the block is one:
// other blocks with content are foreign and unchanged.
func (q *requestDecoder) resultContent(result *chat.ToolResult) error {
	d := q.d
	switch d.Kind() {
	case wire.KindString:
		result.Plain = true
		result.Parts = []chat.Part{{Kind: chat.Text, Text: d.Str()}}
	case wire.KindArray:
		probe := *d
		inner := requestDecoder{d: &probe, r: q.r}
		result.Parts = inner.blocks(-1)
		d.Skip()
		return probe.Err()
	default:
		d.Skip()
	}
	return nil
}
