package gemini

import (
	"encoding/base64"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// encodeMedia writes the inside of an inlineData or fileData part.
func encodeMedia(e *requestEncoder, p *chat.Part, at string) error {
	m := p.Media
	switch {
	case e.t.NoImages && p.Kind == chat.Image:
		return fault.Invalid(at, "%s is an image, which this model does not take", at)
	case e.t.NoDocuments && p.Kind == chat.Document:
		return fault.Invalid(at, "%s is a document, which this model does not take", at)
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
