package converse

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// formats are the wire's names of media types, by the kind of block.
var formats = map[string]struct{ block, format string }{
	"image/png": {"image", "png"}, "image/jpeg": {"image", "jpeg"}, "image/jpg": {"image", "jpeg"}, "image/gif": {"image", "gif"}, "image/webp": {"image", "webp"},

	"application/pdf": {"document", "pdf"}, "text/csv": {"document", "csv"}, "application/csv": {"document", "csv"},
	"application/msword": {"document", "doc"}, "application/vnd.openxmlformats-officedocument.wordprocessingml.document": {"document", "docx"},
	"application/vnd.ms-excel": {"document", "xls"}, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": {"document", "xlsx"},
	"text/html": {"document", "html"}, "text/plain": {"document", "txt"}, "text/markdown": {"document", "md"}, "text/x-markdown": {"document", "md"},

	"video/mp4": {"video", "mp4"}, "video/quicktime": {"video", "mov"}, "video/x-matroska": {"video", "mkv"}, "video/matroska": {"video", "mkv"},
	"video/webm": {"video", "webm"}, "video/x-flv": {"video", "flv"}, "video/mpeg": {"video", "mpeg"}, "video/mpg": {"video", "mpg"},
	"video/x-ms-wmv": {"video", "wmv"}, "video/3gpp": {"video", "three_gp"},

	"audio/mpeg": {"audio", "mp3"}, "audio/mp3": {"audio", "mp3"}, "audio/wav": {"audio", "wav"}, "audio/x-wav": {"audio", "wav"}, "audio/aac": {"audio", "aac"},
	"audio/flac": {"audio", "flac"}, "audio/ogg": {"audio", "ogg"}, "audio/opus": {"audio", "opus"}, "audio/mp4": {"audio", "mp4"}, "audio/webm": {"audio", "webm"},
}

// extensions are the media types by file name extension.
var extensions = map[string]string{
	"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "pdf": "application/pdf",
	"csv": "text/csv", "doc": "application/msword", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xls": "application/vnd.ms-excel", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "html": "text/html",
	"txt": "text/plain", "md": "text/markdown", "mp4": "video/mp4", "mov": "video/quicktime", "mkv": "video/x-matroska", "webm": "video/webm",
	"flv": "video/x-flv", "mpeg": "video/mpeg", "mpg": "video/mpg", "wmv": "video/x-ms-wmv", "3gp": "video/3gpp", "mp3": "audio/mpeg", "wav": "audio/wav",
}

// audioFormats are the client's words for audio that the wire knows too.
var audioFormats = map[string]bool{"wav": true, "mp3": true, "flac": true, "opus": true, "aac": true, "ogg": true, "pcm": true, "webm": true, "m4a": true}

// media writes an image, document, video or audio block.
func media(e *requestEncoder, m *chat.Message, p *chat.Part) error {
	d, at := p.Media, upstream.Path(m, p)
	block, format, err := blockOf(e, p, at)
	if err != nil {
		return err
	}
	switch {
	case block == "document" && e.t.NoDocuments:
		return fault.Invalid(at, "%s is a document, which this model does not accept", at)
	case block == "image" && e.t.NoImages:
		return fault.Invalid(at, "%s is an image, which this model does not accept", at)
	}
	source, err := encodeSource(e, d, at)
	if err != nil {
		return err
	}
	e.Open('{')
	e.Key(block)
	e.Open('{')
	e.Str("format", format)
	if block == "document" {
		e.Str("name", documentName(e, d))
	}
	e.Raw("source", source)
	if block == "document" {
		e.StrIf("context", d.Context)
		if len(d.Citations) > 0 {
			e.Raw("citations", d.Citations)
		}
	}
	e.B = append(e.B, "}}"...)
	if d.Detail != "" && d.Detail != "auto" {
		e.loss.Add(at+".image_url.detail", notTaken)
	}
	return nil
}

// blockOf returns the kind of block and the provider's name of the format.
func blockOf(e *requestEncoder, p *chat.Part, at string) (block, format string, err error) {
	d := p.Media
	if p.Kind == chat.Audio {
		if !audioFormats[d.Format] {
			return "", "", fault.Invalid(at, "%s is audio of the format %q, which this provider does not accept", at, d.Format)
		}
		return "audio", d.Format, nil
	}
	mime, _, _ := strings.Cut(strings.ToLower(d.MIME), ";")
	if mime = strings.TrimSpace(mime); mime == "" {
		file := d.URL
		if file == "" {
			file = d.Name
		}
		mime = extensions[strings.ToLower(file[strings.LastIndexByte(file, '.')+1:])]
	}
	switch {
	case mime != "":
	case p.Kind == chat.Document && d.Plain:
		mime = "text/plain"
	case p.Kind == chat.Document:
		mime = "application/pdf"
	default:
		return "", "", fault.Invalid(at, "%s must have a mime_type for this provider: its address does not show its type", at)
	}
	f, ok := formats[mime]
	if !ok && strings.HasPrefix(mime, "text/") {
		f, ok = formats["text/plain"], true
	}
	if !ok {
		return "", "", fault.Invalid(at, "%s is of type %q; this provider accepts png, jpeg, gif and webp images, pdf, csv, doc, docx, xls, xlsx, html, txt and md documents, and common video and audio", at, mime)
	}
	return f.block, f.format, nil
}

// encodeSource returns the source object: bytes, or an address in S3. Nothing is fetched
// from elsewhere for the client.
func encodeSource(e *requestEncoder, d *chat.Media, at string) ([]byte, error) {
	o := upstream.Begin(nil)
	switch {
	case d.FileID != "":
		return nil, fault.Invalid(at, "%s must not be a file id: this provider does not store files", at)
	case strings.HasPrefix(d.URL, "s3://"):
		o.Key("s3Location")
		o.Open('{')
		o.Str("uri", d.URL)
		o.Close('}')
	case d.URL != "":
		return nil, fault.Invalid(at, "%s must be a data: or s3: URL for this provider, which fetches nothing from the web", at)
	case d.Plain:
		o.Str("bytes", base64.StdEncoding.EncodeToString([]byte(d.Data)))
	default:
		o.Str("bytes", d.Data)
	}
	o.Close('}')
	return o.B, nil
}

// documentName makes the name of a document from its content, so that it is the same on
// each turn and the prompt cache stays warm. The wire wants the names in one request to
// differ, and to have letters, digits, blanks, dashes and brackets only.
func documentName(e *requestEncoder, d *chat.Media) string {
	h := sha256.New()
	h.Write([]byte(d.Data))
	h.Write([]byte(d.URL))
	title := documentTitle(d.Name)
	name := title + hex.EncodeToString(h.Sum(nil)[:8])
	if e.documents == nil {
		e.documents = make(map[string]int)
	}
	e.documents[name]++
	if n := e.documents[name]; n > 1 {
		return name + "-" + strconv.Itoa(n)
	}
	return name
}

// documentTitle is the part of a file's name that the wire allows, with a blank after it.
func documentTitle(file string) string {
	if i := strings.LastIndexByte(file, '.'); i > 0 {
		file = file[:i]
	}
	b := make([]byte, 0, min(len(file), 100)+1)
	for i := range len(file) {
		c := file[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-()[]", c) < 0 {
			c = ' '
		}
		if c == ' ' && (len(b) == 0 || b[len(b)-1] == ' ') {
			continue // never two blanks
		}
		if b = append(b, c); len(b) == 100 {
			break
		}
	}
	if len(b) == 0 {
		return "document "
	}
	if b[len(b)-1] != ' ' {
		b = append(b, ' ')
	}
	return string(b)
}
