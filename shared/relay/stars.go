package relay

import (
	"bytes"
	"io"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// This file keeps credentials out of what is shown and stored, whoever said them:
// providers repeat them in errors, and the log shows what was sent. They are found
// by value and overwritten by stars of the same length.

// secrets are those of the target that was called last, with the tokens that were
// made of them.
func (m *starMask) secrets() []string {
	all := m.to.target.Secrets(nil, true)
	for name, values := range m.sentHeader {
		if !hides(name, nil) && name != m.to.target.Provider.Auth.Name {
			continue
		}
		for _, v := range values {
			if len(v) >= 8 {
				all = provider.TokenOf(append(all, v), v)
			}
		}
	}
	return all
}

// hide overwrites each secret in text, however it is escaped: as it is, in JSON,
// in JSON within JSON, or in a URL. It tells whether there was one.
func hide(text []byte, secrets []string) (found bool) {
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

// spelledIn finds a secret in text behind from, in whatever spelling; n is 0 when it
// is not there.
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

// hidden is text without secrets.
func hidden(text string, secrets []string) string {
	for _, s := range secrets {
		if _, n := spelledIn(text, s, 0); n > 0 {
			b := []byte(text)
			hide(b, secrets)
			return string(b)
		}
	}
	return text
}

// hideInHeader takes secrets out of the values of headers. The values may be
// shared, so they are replaced.
func hideInHeader(h http.Header, secrets []string) {
	for name, values := range h {
		for i, v := range values {
			if clean := hidden(v, secrets); clean != v {
				values = append([]string(nil), values...)
				values[i] = clean
				h[name] = values
			}
		}
	}
}

// hideInHead is hideInHeader for the head of an answer that went well.
func (m *starMask) hideInHead(h http.Header) {
	if m.to.target.Provider == nil {
		return
	}
	var room [8]string
	hideInHeader(h, m.to.target.Secrets(room[:0], false))
}

// hideInFault takes secrets out of what an error says.
func (m *starMask) hideInFault(f *fault.Fault) {
	if f == nil || m.to.target.Provider == nil {
		return
	}
	secrets := m.secrets()
	if len(secrets) == 0 {
		return
	}
	f.Message, f.Field = hidden(f.Message, secrets), hidden(f.Field, secrets)
	for i := range f.Details {
		f.Details[i].Field, f.Details[i].Message = hidden(f.Details[i].Field, secrets), hidden(f.Details[i].Message, secrets)
	}
	if said := chat.ProviderErrorOf(f); said != nil {
		said.Type, said.Param = hidden(said.Type, secrets), hidden(said.Param, secrets)
		said.Code, said.Message = hidden(said.Code, secrets), hidden(said.Message, secrets)
		hide(said.Inner, secrets)
	}
}

// hideRefusal takes secrets out of a provider's error answer, head and body.
func (m *starMask) hideRefusal(h http.Header, body []byte) {
	secrets := m.secrets()
	hide(body, secrets)
	hideInHeader(h, secrets)
}

// hideRaw has an error answer that is passed through read without secrets. One that
// cannot be read is not passed on where the credential is a saved one.
func (m *starMask) hideRaw(resp *http.Response) error {
	secrets := m.secrets()
	if len(secrets) == 0 {
		return nil
	}
	hideInHeader(resp.Header, secrets)
	if m.req.Method == http.MethodHead {
		return nil
	}
	if len(resp.Header["Content-Encoding"]) > 0 && !m.to.target.Saved {
		return nil // the credential is the caller's own
	}
	if egress.Inflate(resp, 0) != nil {
		f := fault.Newf(fault.ProviderError, "", "%s refused the request, in a content-encoding that is not read here; ask for gzip or none", m.to.target.Provider.ID)
		f.Source, f.StatusCode = fault.SourceProvider, max(resp.StatusCode, 300)
		return f
	}
	resp.Body = newStars(resp.Body, secrets)
	return nil
}

// stars is a body that is read without secrets. What may be the beginning of one is
// held until it is known.
type stars struct {
	io.ReadCloser
	secrets []string
	hold    int // bytes of the longest secret in its longest spelling
	buf     []byte
	ready   int // bytes of buf that may be given
	err     error
}

func newStars(body io.ReadCloser, secrets []string) *stars {
	s := &stars{ReadCloser: body, secrets: secrets}
	for _, v := range secrets {
		s.hold = max(s.hold, 8*len(v))
	}
	return s
}

// Read implements io.Reader.
func (s *stars) Read(p []byte) (int, error) {
	for s.ready == 0 && s.err == nil {
		at := len(s.buf)
		s.buf = append(s.buf, make([]byte, 4<<10)...)
		var n int
		n, s.err = s.ReadCloser.Read(s.buf[at:])
		s.buf = s.buf[:at+n]
		hide(s.buf, s.secrets)
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

// hideInLog takes secrets out of what the log keeps. Answers that went well are
// searched for them as they are, not for other spellings.
func (l *logbook) hideInLog() {
	if l.to.target.Provider == nil {
		return
	}
	var room [8]string
	secrets := l.to.target.Secrets(room[:0], false)
	b := &l.bodies
	for _, s := range secrets {
		overwrite(b.Response, s)
		overwrite(b.Received, s)
		overwrite(b.ResponseHeaders, s)
	}
}

// hideInRecord takes secrets out of what the books repeat of an answer.
func (l *logbook) hideInRecord() {
	if l.to.target.Provider == nil {
		return
	}
	var room [8]string
	secrets := l.to.target.Secrets(room[:0], false)
	l.rec.Model, l.rec.FinishReason = hidden(l.rec.Model, secrets), hidden(l.rec.FinishReason, secrets)
	for i := range l.rec.Attempts {
		l.rec.Attempts[i].RequestID = hidden(l.rec.Attempts[i].RequestID, secrets)
	}
}

// overwrite is hide for one secret as it is.
func overwrite(text []byte, s string) {
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

// tellsSecret tells whether an answer that went well repeats a credential, so that
// it is not kept.
func (m *starMask) tellsSecret(out []byte) bool {
	for _, s := range m.to.target.Secrets(nil, false) {
		if bytes.Contains(out, []byte(s)) {
			return true
		}
	}
	return false
}

// customNames are the headers that the target's credential adds, whose values may
// be credentials whatever they are called.
func (m *starMask) customNames(dst []string) []string {
	for _, custom := range [...]map[string]string{m.to.target.CustomHeaders, m.to.target.Credential.CustomHeaders} {
		for name := range custom {
			dst = append(dst, http.CanonicalHeaderKey(name))
		}
	}
	return dst
}
