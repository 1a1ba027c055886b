package gemini

import (
	"encoding/base64"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// encodeMedia writes the inside of an inlineData or fileData part.
func encodeMedia(e *requestEncoder, p *chat.Part, at string) error {
	m := p.Media
	switch {
	case e.t.NoImages && p.Kind == chat.Image:
		return fault.Invalid(at, "%s is an image, which this model does not accept", at)
	case e.t.NoDocuments && p.Kind == chat.Document:
		return fault.Invalid(at, "%s is a document, which this model does not accept", at)
	}
	if m.Detail != "" && m.Detail != "auto" {
		e.loss.Add(at+".image_url.detail", notTaken)
	}
	switch {
	case m.FileID != "":
		return fileID(e, m, at)
	case m.URL != "":
		if !strings.HasPrefix(m.URL, "https://") && !strings.HasPrefix(m.URL, "http://") && !strings.HasPrefix(m.URL, "gs://") {
			return fault.Invalid(at, "%s must be a data:, https: or gs: URL for this provider", at)
		}
		mime := m.MIME
		if mime == "" && !strings.Contains(m.URL, filesHost) {
			standard := "image/jpeg"
			if p.Kind == chat.Document {
				standard = "application/pdf"
			}
			mime = mimeOf(m.URL, standard)
		}
		fileData(e, m.URL, mime)
		return nil
	}
	mime, data := m.MIME, m.Data
	switch {
	case p.Kind == chat.Audio:
		if mime = audioType(m.Format); mime == "" {
			return fault.Invalid(at+".input_audio.format", "%s.input_audio.format must be wav, mp3, aac, ogg, opus, flac, aiff, m4a, mpeg, mp4, webm or pcm16 for this provider", at)
		}
	case m.Plain:
		data = base64.StdEncoding.EncodeToString([]byte(data))
	}
	if mime == "" {
		mime = "application/octet-stream"
	}
	encodeKey(e, "inlineData")
	e.b = append(e.b, '{')
	str(e, "mimeType", mime)
	str(e, "data", data)
	e.b = append(e.b, '}')
	return nil
}

// filesHost serves the files that were uploaded to the provider; it knows their
// types.
const filesHost = "generativelanguage.googleapis.com/"

// fileID writes a file stored by the provider: files/abc or its complete address.
func fileID(e *requestEncoder, m *chat.Media, at string) error {
	switch id := m.FileID; {
	case strings.HasPrefix(id, "gs://"):
		fileData(e, id, mimeOf(id, m.MIME))
	case strings.HasPrefix(id, "https://"):
		fileData(e, id, m.MIME)
	case strings.HasPrefix(id, "files/"):
		fileData(e, "https://"+filesHost+"v1beta/"+id, m.MIME)
	default:
		return fault.Invalid(at+".file.file_id", "%s.file.file_id must be a file of this provider (files/..., gs://...)", at)
	}
	return nil
}

func fileData(e *requestEncoder, uri, mime string) {
	encodeKey(e, "fileData")
	e.b = append(e.b, '{')
	if mime != "" {
		str(e, "mimeType", mime)
	}
	str(e, "fileUri", uri)
	e.b = append(e.b, '}')
}

var mimes = map[string]string{
	"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif", "heic": "image/heic", "heif": "image/heif", "bmp": "image/bmp",
	"pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown", "csv": "text/csv", "html": "text/html", "htm": "text/html", "json": "application/json", "xml": "text/xml",
	"mp4": "video/mp4", "mpeg": "video/mpeg", "mpg": "video/mpeg", "mov": "video/quicktime", "avi": "video/x-msvideo", "webm": "video/webm", "wmv": "video/x-ms-wmv", "flv": "video/x-flv", "3gp": "video/3gpp",
	"wav": "audio/wav", "mp3": "audio/mp3", "flac": "audio/flac", "ogg": "audio/ogg", "aac": "audio/aac", "m4a": "audio/m4a",
}

// mimeOf returns the type for the file extension of an address, or standard.
func mimeOf(url, standard string) string {
	url, _, _ = strings.Cut(url, "?")
	if strings.Contains(url, "youtube.com/") || strings.Contains(url, "youtu.be/") {
		return "video/mp4"
	}
	if i := strings.LastIndexByte(url, '.'); i >= 0 {
		if mime, ok := mimes[strings.ToLower(url[i+1:])]; ok {
			return mime
		}
	}
	return standard
}

func audioType(format string) string {
	switch format {
	case "wav", "aac", "flac", "aiff", "mpeg", "mp4", "webm", "ogg", "mp3", "m4a", "mpga":
		return "audio/" + format
	case "x-aac":
		return "audio/aac"
	case "x-m4a":
		return "audio/m4a"
	case "opus":
		return "audio/ogg"
	case "pcm16", "pcm":
		return "audio/pcm"
	}
	return ""
}

// Generate is the dialect of :generateContent and :streamGenerateContent.
type Generate struct{}

var _ chat.TwoWayDialect = Generate{}

// name is the dialect's name.
const name = "gemini"

// Name implements chat.Dialect.
func (Generate) Name() string { return name }

// Check implements chat.RequestReader.
func (Generate) Check(body []byte, c *chat.Checked) error { return check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Generate) DecodeRequest(body []byte) (*chat.Request, error) { return decodeRequest(body) }

// EncodeResponse implements chat.ResponseWriter.
func (Generate) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.ResponseWriter.
func (Generate) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return &streamEncoder{o: *o} }

// AppendError implements chat.ErrorWriter.
func (Generate) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendError(dst, f, o)
}

// AppendStreamError implements chat.ErrorWriter. Google's SDK ignores named events.
func (Generate) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	dst = append(dst, "data: "...)
	dst = appendError(dst, f, o)
	return append(dst, "\r\n\r\n"...)
}

// BreaksConnection implements chat.Breaker. Gemini CLI repeats the request, and prints the
// text again, if the stream ends in order.
func (Generate) BreaksConnection() bool { return true }

// EncodeRequest implements chat.RequestWriter.
func (Generate) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.ResponseReader.
func (Generate) DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body, t)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.ResponseReader.
func (Generate) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder { return &streamDecoder{t: t} }

// DecodeError implements chat.ErrorReader.
func (Generate) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Generate) MeterResponse(body []byte) chat.Meter { return meterPlain(body) }

// NewStreamFilter implements chat.Passer.
func (Generate) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter { return new(filter) }

// validated is the mode of tool_choice in which calls are held to their schemas.
const validated = "validated"

// counted is the request for which :countTokens counts the tokens; without it the body
// has contents.
var counted = wire.NewKeySet("generateContentRequest")

// DecodeCounted reads a body of :countTokens.
func DecodeCounted(body []byte) (*chat.Request, error) {
	var w wire.Walk
	if err := counted.Walk(body, &w); err != nil {
		return nil, err
	}
	if s := w.Spans[0]; s.Present(body) && wire.KindOf(s.Of(body)) == wire.KindObject {
		body = s.Of(body)
	}
	return decodeRequest(body)
}

// Support implements chat.ResponseWriter.
func (Generate) Support(*chat.Options) chat.ResponseSupport {
	return chat.ResponseSupport{
		Features: chat.HoldsChoices | chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted | chat.HoldsImages | chat.HoldsCalls | chat.HoldsMoreCalls,
		Choice:   "candidates", Content: "content.parts",
		Broken: chat.BrokenStop, CompleteCalls: true,
	}
}

// standard converts a schema in Gemini's format to a JSON Schema. In Gemini's format
// types are in capitals and limits may be texts. raw is valid JSON. Parts that are JSON
// Schema already remain.
func standard(dst, raw []byte) []byte {
	if wire.KindOf(raw) != wire.KindObject {
		return append(dst, raw...)
	}
	nullable := false
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		if v := d.Raw(); string(key) == "nullable" {
			nullable = string(v) == "true"
		}
	}
	dst = append(dst, '{')
	d = wire.NewDecoder(raw)
	for key := range d.Object {
		name, v := string(key), d.Raw()
		if name == "nullable" || name == "propertyOrdering" || name == "format" && string(v) == `"enum"` {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendJSONString(dst, name), ':')
		dst = standardMember(dst, name, v, nullable)
	}
	return append(dst, '}')
}

func standardMember(dst []byte, name string, v []byte, nullable bool) []byte {
	kind := wire.KindOf(v)
	switch {
	case name == "type" && kind == wire.KindString:
		word := strings.ToLower(string(v)) // of letters
		if nullable {
			return append(append(append(dst, '['), word...), `,"null"]`...)
		}
		return append(dst, word...)
	case name == "items":
		return standard(dst, v)
	case name == "properties" && kind == wire.KindObject:
		dst = append(dst, '{')
		d := wire.NewDecoder(v)
		for key := range d.Object {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(wire.AppendJSONString(dst, string(key)), ':')
			dst = standard(dst, d.Raw())
		}
		return append(dst, '}')
	case name == "anyOf" && kind == wire.KindArray:
		dst = append(dst, '[')
		d := wire.NewDecoder(v)
		for i := range d.Array {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = standard(dst, d.Raw())
		}
		return append(dst, ']')
	case textBounds[name] && kind == wire.KindString:
		if s, err := wire.ScanString(v, name); err == nil && isCount(s) {
			return append(dst, s...)
		}
	}
	return append(dst, v...)
}

// textBounds are complete numbers, which Gemini's clients may write as texts.
var textBounds = map[string]bool{"minItems": true, "maxItems": true, "minLength": true, "maxLength": true, "minProperties": true, "maxProperties": true}

func isCount(s string) bool {
	return s != "" && len(s) < 19 && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0')
}
