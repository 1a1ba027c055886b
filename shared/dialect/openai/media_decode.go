package openai

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// imageURL reads {url, detail}; a bare string is taken for the url.
func (q *requestDecoder) imageURL(media *chat.Media) {
	d := q.d
	if d.Kind() == wire.KindString {
		q.url(media)
		return
	}
	whole := *d
	for key := range d.Object {
		switch string(key) {
		case "url":
			q.url(media)
		case "detail":
			media.Detail = upstream.OptString(d)
		case "mime_type", "format":
			if media.MIME == "" {
				media.MIME = upstream.OptString(d)
			}
		}
	}
	if media.URL == "" && media.Data == "" {
		jsonfield.Missing(d, &whole, "url")
	}
}

// url reads a data: or web address.
func (q *requestDecoder) url(media *chat.Media) {
	d := q.d
	s := d.Str()
	if d.Err() != nil {
		return
	}
	mime, data, plain, ok := dataURL(s)
	if !ok {
		if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "gs://") && !strings.HasPrefix(s, "s3://") {
			d.Fail("must be a data: or https: URL")
			return
		}
		media.URL = s
		return
	}
	q.setData(media, mime, data, plain)
}

// setData takes the content of a data: URL. Its type is recognized by its first bytes,
// because clients often name a wrong one.
func (q *requestDecoder) setData(media *chat.Media, mime, data string, plain bool) {
	d := q.d
	if plain {
		text, err := url.PathUnescape(data)
		if err != nil {
			d.Fail("is not a valid data: URL: bad percent escape")
			return
		}
		if strings.HasPrefix(mime, "text/") {
			media.Data, media.MIME, media.Plain = text, mime, true
			return
		}
		data = base64.StdEncoding.EncodeToString([]byte(text))
	}
	clean, ok := chat.CleanBase64(data)
	if !ok {
		d.Fail("is not a valid data: URL: its data is not base64")
		return
	}
	media.Data = clean
	if media.MIME = sniff(clean); media.MIME == "" {
		media.MIME = mime
		if mime == "image/jpg" {
			media.MIME = "image/jpeg"
		}
	}
}

// file reads {file_id} | {file_data} | {file_url} with a name and type.
func (q *requestDecoder) file(media *chat.Media) {
	d := q.d
	whole := *d
	var data, mime string
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "file_id":
			media.FileID = d.Str()
		case "file_url":
			media.URL = d.Str()
		case "file_data":
			data = d.Str()
		case "filename", "file_name":
			media.Name = d.Str()
		case "mime_type":
			mime = d.Str()
		}
	}
	if d.Err() != nil {
		return
	}
	switch {
	case data != "":
		if m, content, plain, ok := dataURL(data); ok {
			q.setData(media, m, content, plain)
			return
		}
		if mime == "text/plain" {
			media.Data, media.MIME, media.Plain = data, mime, true
			return
		}
		if mime == "" {
			mime = "application/pdf"
		}
		q.setData(media, mime, data, false)
	case media.URL == "" && media.FileID == "":
		jsonfield.Missing(d, &whole, "file_id, file_data or file_url")
	default:
		media.MIME = mime
	}
}

// sniff recognizes the type of base64 data by its first bytes; "" if models do not take the
// type.
func sniff(data string) string {
	var head [12]byte
	n, _ := base64.StdEncoding.Decode(head[:], []byte(data[:min(len(data), 16)]))
	b := string(head[:n])
	switch {
	case strings.HasPrefix(b, "\xff\xd8\xff"):
		return "image/jpeg"
	case strings.HasPrefix(b, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case strings.HasPrefix(b, "GIF87a"), strings.HasPrefix(b, "GIF89a"):
		return "image/gif"
	case strings.HasPrefix(b, "RIFF") && strings.HasSuffix(b, "WEBP"):
		return "image/webp"
	case strings.HasPrefix(b, "%PDF-"):
		return "application/pdf"
	}
	return ""
}

// tool reads one element of tools.
func (q *requestDecoder) tool() chat.Tool {
	d := q.d
	var t chat.Tool
	whole := *d
	seenFunction := false
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			if kind := d.Str(); kind != "function" {
				t.ForeignType = kind
			}
		case "function", "custom":
			seenFunction = true
			q.function(&t)
		case "cache_control":
			t.Cache = jsonfield.CacheMarker(d)
		default:
			jsonfield.AddCopy(d, string(key), &t.Extra)
		}
	}
	if t.ForeignType == "custom" && seenFunction && t.Name != "" {
		t.ForeignType, t.Custom, t.Schema = "", true, []byte(chat.TextTool)
		return t
	}
	if t.ForeignType != "" {
		return chat.Tool{Name: t.ForeignType, ForeignType: t.ForeignType, Raw: bytes.Clone(whole.Raw()), Cache: t.Cache}
	}
	if !seenFunction {
		jsonfield.Missing(d, &whole, "function")
	}
	return t
}

// function reads the description of a function into t.
func (q *requestDecoder) function(t *chat.Tool) {
	d := q.d
	whole := *d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		jsonfield.OfFunction(d, key, "parameters", t)
	}
	if t.Name == "" {
		jsonfield.Missing(d, &whole, "name")
	}
}

// toolChoice reads tool_choice and function_call, with the name at place.
func (q *requestDecoder) toolChoice(place string) chat.ToolChoice {
	d := q.d
	if d.Kind() == wire.KindString {
		switch word := d.Str(); word {
		case "none":
			return chat.ToolChoice{Mode: chat.ToolsNone}
		case "required", "any": // some hosts call it so
			return chat.ToolChoice{Mode: chat.ToolsRequired}
		case "auto":
			return chat.ToolChoice{Mode: chat.ToolsAuto}
		default:
			return chat.ToolChoice{Mode: chat.ToolsAuto, HostMode: word}
		}
	}
	whole := *d
	name := ""
	allowed := chat.ToolsUnset
	for key := range d.Object {
		switch string(key) {
		case "name":
			name = d.Str()
		case "function", "custom":
			for inner := range d.Object {
				if string(inner) == "name" {
					name = d.Str()
				}
			}
		case "allowed_tools":
			allowed = q.allowedTools()
		}
	}
	if allowed != chat.ToolsUnset {
		return chat.ToolChoice{Mode: allowed}
	}
	if name == "" {
		jsonfield.Missing(d, &whole, place)
	}
	return chat.ToolChoice{Mode: chat.ToolsNamed, Name: name}
}

// allowedTools reads {mode, tools}: the offered tools that may be called. No other provider
// knows such a list, so the other tools are not offered.
func (q *requestDecoder) allowedTools() chat.ToolChoiceMode {
	d := q.d
	mode := chat.ToolsAuto
	q.allowed = make(map[string]bool)
	for key := range d.Object {
		switch string(key) {
		case "mode":
			switch d.Str() {
			case "auto":
			case "required":
				mode = chat.ToolsRequired
			default:
				q.r.Assume("tool_choice.allowed_tools.mode", "auto")
			}
		case "tools":
			for range d.Array {
				t := q.tool()
				q.allowed[t.ForeignType+"/"+t.Name] = true
			}
		}
	}
	return mode
}

// offer omits the tools that may not be called.
func (q *requestDecoder) offer() {
	if q.allowed == nil {
		return
	}
	q.r.Tools = slices.DeleteFunc(q.r.Tools, func(t chat.Tool) bool { return !q.allowed[t.ForeignType+"/"+t.Name] })
}

// functionCallID makes the id of a legacy function call from its place, so that
// it is the same on each turn.
func functionCallID(message int) string { return "call_function_" + strconv.Itoa(message) }
