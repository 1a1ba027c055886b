package http1

import (
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/wire/field"
)

// parse parses a head of complete lines, which end with an empty one; false leaves it to
// net/http. The request aliases head.
func (c *conn) parse(head string) (*exchange, bool) {
	line, rest := cut(head)
	method, target, ok := requestLine(line)
	if !ok {
		return nil, false
	}
	count := strings.Count(rest, "\n")
	f := fields{header: make(http.Header, max(0, count-2)), values: make([]string, 0, count)} // one line is the host, one is empty
	for {
		if line, rest = cut(rest); line == "" {
			break
		}
		if !f.add(line) {
			return nil, false
		}
	}
	if rest != "" || f.host == "" {
		return nil, false
	}
	x := &exchange{c: c, length: -1, head: method == http.MethodHead, wantsClose: f.closing || c.spare}
	if !x.setTarget(target) {
		return nil, false
	}
	x.life.Begin(c.s.base)
	r := c.s.template.WithContext(&x.life)
	r.Method, r.URL, r.RequestURI = method, &x.url, target
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.Header, r.Host, r.Close, r.RemoteAddr = f.header, f.host, f.closing, c.remote
	r.Body = http.NoBody
	if f.length > 0 {
		r.ContentLength = f.length
		x.body.x, x.body.left = x, f.length
		r.Body = &x.body
	}
	x.req = r
	c.release()
	return x, true
}

// cut returns the first line, which ends with CRLF, and the rest.
func cut(s string) (line, rest string) {
	n := strings.IndexByte(s, '\r')
	if n < 0 || n+1 == len(s) || s[n+1] != '\n' {
		return s, "" // contains a control character, which is invalid
	}
	return s[:n], s[n+2:]
}

// requestLine parses the first line of a request of the common form.
func requestLine(line string) (method, target string, ok bool) {
	const end = " HTTP/1.1"
	method, rest, ok := strings.Cut(line, " ")
	if !ok || !strings.HasSuffix(rest, end) {
		return "", "", false
	}
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodHead, http.MethodOptions:
	default:
		return "", "", false
	}
	target = rest[:len(rest)-len(end)]
	if target == "" || target[0] != '/' {
		return "", "", false
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return "", "", false
		}
	}
	return method, target, true
}

// plainPath are the characters of paths that url.URL neither requires nor writes escaped.
var plainPath = func() (t [256]bool) {
	for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.~/$&+,:;=@") {
		t[c] = true
	}
	return t
}()

// setTarget parses the target like url.ParseRequestURI; it begins with a slash and
// contains no spaces and no control characters.
func (x *exchange) setTarget(target string) bool {
	end := 0
	for end < len(target) && plainPath[target[end]] {
		end++
	}
	switch {
	case end == len(target):
		x.url.Path = target
	case target[end] == '?':
		x.url.Path, x.url.RawQuery = target[:end], target[end+1:]
		x.url.ForceQuery = end+1 == len(target)
	default:
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return false
		}
		x.url = *u
	}
	return true
}

// fields are the fields of a request.
type fields struct {
	header  http.Header
	values  []string // memory for the values of the header
	host    string
	length  int64
	closing bool
}

// fieldLine parses the line of a field.
func fieldLine(line string) (name, value string, ok bool) {
	colon := strings.IndexByte(line, ':')
	if colon <= 0 {
		return "", "", false
	}
	name, ok = field.Name(line[:colon])
	value = field.Trim(line[colon+1:])
	return name, value, ok && field.Value(value)
}

// add adds a line; false leaves the request to net/http.
func (f *fields) add(line string) bool {
	name, value, ok := fieldLine(line)
	if !ok {
		return false
	}
	before := f.header[name]
	switch name {
	case "Host":
		if f.host != "" || !plainHost(value) {
			return false
		}
		f.host = value
		return true
	case "Content-Length":
		if f.length, ok = field.Length(value); !ok || before != nil {
			return false
		}
	case "Connection":
		f.closing = strings.EqualFold(value, "close")
		if before != nil || !f.closing && !strings.EqualFold(value, "keep-alive") {
			return false
		}
	case "Transfer-Encoding", "Upgrade", "Expect", "Trailer", "Pragma", "Http2-Settings":
		return false
	}
	if before != nil {
		f.header[name] = append(before, value)
		return true
	}
	f.values = append(f.values, value)
	f.header[name] = f.values[len(f.values)-1 : len(f.values) : len(f.values)]
	return true
}

// plainHost reports whether a host only has the characters of names and addresses.
func plainHost(h string) bool {
	for i := range len(h) {
		c := h[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != ':' && c != '[' && c != ']' && c != '_' {
			return false
		}
	}
	return h != ""
}
