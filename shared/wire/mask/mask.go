// Package mask redacts secrets from text that is shown or stored. It finds them by value, in
// every spelling, and overwrites them with asterisks of the same length. Secrets must not
// be empty.
package mask

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// Bytes overwrites each secret in text, however it is escaped: as it is, in JSON, in JSON
// within JSON, or in a URL. It reports whether there was one.
func Bytes(text []byte, secrets []string) (found bool) {
	for _, s := range secrets {
		for at, n := spelledIn(text, s, 0); n > 0; at, n = spelledIn(text, s, at+n) {
			found = true
			for j := range n {
				text[at+j] = '*'
			}
		}
	}
	return found
}

// spelledIn finds a secret in text after from, in any spelling; n is 0 if there is none.
func spelledIn[T string | []byte](text T, s string, from int) (at, n int) {
	for i := from; i < len(text); i++ {
		if b := text[i]; b == s[0] || b == '\\' || b == '%' {
			if n := spelled(text[i:], s); n > 0 {
				return i, n
			}
		}
	}
	return 0, 0
}

// spelled is how many bytes at the beginning of text say s; 0 when they do not.
func spelled[T string | []byte](text T, s string) int {
	at := 0
	for i := range len(s) {
		b, n := plainByte(text[at:])
		switch {
		case n == 0:
			return 0
		case b == s[i]:
			at += n
		case text[at] == '+' && s[i] == ' ', // in a query
			text[at] == s[i]: // a backslash or a percent sign that means itself
			at++
		default:
			return 0
		}
	}
	return at
}

// plainByte reads one byte of text, escaped or not; n is 0 at its end.
func plainByte[T string | []byte](text T) (b byte, n int) {
	if len(text) == 0 {
		return 0, 0
	}
	switch text[0] {
	case '%':
		if len(text) >= 3 {
			if v, ok := hexValue(text[1:3]); ok {
				return v, 3
			}
		}
	case '\\':
		n = 1
		for n < len(text) && text[n] == '\\' {
			n++ // JSON within JSON
		}
		if n == len(text) {
			return '\\', n
		}
		switch e := text[n]; e {
		case 'u':
			if len(text) >= n+5 && text[n+1] == '0' && text[n+2] == '0' {
				if v, ok := hexValue(text[n+3 : n+5]); ok {
					return v, n + 5
				}
			}
			return '\\', n
		case 'n':
			return '\n', n + 1
		case 'r':
			return '\r', n + 1
		case 't':
			return '\t', n + 1
		case '"', '/':
			return e, n + 1
		}
		return '\\', n
	}
	return text[0], 1
}

func hexValue[T string | []byte](two T) (v byte, ok bool) {
	for i := range len(two) {
		d := two[i]
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | d
	}
	return v, true
}

// Text returns text without secrets.
func Text(text string, secrets []string) string {
	asItIs := strings.IndexByte(text, '\\') < 0 && strings.IndexByte(text, '%') < 0 && strings.IndexByte(text, '+') < 0
	for _, s := range secrets {
		if asItIs && !strings.Contains(text, s) {
			continue // most texts have one spelling, which is found much sooner
		}
		if _, n := spelledIn(text, s, 0); n > 0 {
			b := []byte(text)
			Bytes(b, secrets)
			return string(b)
		}
	}
	return text
}

// Header takes secrets out of the values of headers. The values may be
// shared, so they are replaced.
func Header(h http.Header, secrets []string) {
	for name, values := range h {
		for i, v := range values {
			if clean := Text(v, secrets); clean != v {
				values = append([]string(nil), values...)
				values[i] = clean
				h[name] = values
			}
		}
	}
}

// Overwrite overwrites one secret in text as it is, not in other spellings.
func Overwrite(text []byte, s string) {
	short := s[:min(len(s), 63)] // longer ones are searched for in a slower way
	for i := 0; ; {
		n := bytes.Index(text[i:], []byte(short))
		if n < 0 {
			return
		}
		i += n
		if !bytes.HasPrefix(text[i:], []byte(s)) {
			i++
			continue
		}
		for j := range len(s) {
			text[i+j] = '*'
		}
		i += len(s)
	}
}

// Body is a body that is read with its secrets masked. Bytes that may begin a secret are
// held back until more has come.
type Body struct {
	io.ReadCloser
	secrets []string
	hold    int // bytes of the longest secret in its longest spelling
	buf     []byte
	ready   int // bytes of buf that can be given out
	err     error
}

// NewBody reads body without secrets.
func NewBody(body io.ReadCloser, secrets []string) *Body {
	s := &Body{ReadCloser: body, secrets: secrets}
	for _, v := range secrets {
		s.hold = max(s.hold, 8*len(v))
	}
	return s
}

// Read implements io.Reader.
func (s *Body) Read(p []byte) (int, error) {
	for s.ready == 0 && s.err == nil {
		at := len(s.buf)
		s.buf = append(s.buf, make([]byte, 4<<10)...)
		var n int
		n, s.err = s.ReadCloser.Read(s.buf[at:])
		s.buf = s.buf[:at+n]
		Bytes(s.buf, s.secrets)
		if s.ready = len(s.buf); s.err == nil {
			s.ready = max(0, len(s.buf)-s.hold)
		}
	}
	if s.ready == 0 {
		return 0, s.err
	}
	n := copy(p, s.buf[:s.ready])
	s.buf, s.ready = s.buf[n:], s.ready-n
	return n, nil
}
