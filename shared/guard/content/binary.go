package content

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"

	"gateway/shared/wire"
)

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

// Unread reports whether a body may contain text that cannot be read: a document in a binary
// format, or token ids instead of a text of a request. kind is as for InRequest and InAnswer;
// answer is true for a response. field names the field with token ids; it is empty for a
// document.
func Unread(kind string, body []byte, answer bool) (field string, unread bool) {
	r := reader(kind, body)
	at := place{message: beside, root: true}
	if r.answer = answer; answer {
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
