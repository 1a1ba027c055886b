package egress

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/wire/field"
)

// maxHead bounds the head of a response, and all its informational heads
// together, in bytes.
const maxHead = 64 << 10

// appendHead appends the head of a request with a body of length bytes. A character that
// could end a line or a name early is an error, so that one header of a caller never
// becomes two.
func appendHead(dst []byte, req *http.Request, length int) ([]byte, error) {
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	if !field.Token(method) {
		return dst, errors.New("egress: the method is not a token")
	}
	uri := req.URL.RequestURI()
	for i := range len(uri) {
		if uri[i] <= ' ' || uri[i] == 0x7f {
			return dst, errors.New("egress: the path contains a space or a control character")
		}
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	dst = append(append(append(dst, method...), ' '), uri...)
	dst = append(append(dst, " HTTP/1.1\r\nHost: "...), host...)
	dst = append(dst, "\r\n"...)
	for name, values := range req.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding":
			continue
		}
		if !field.Token(name) {
			return dst, errors.New("egress: the name of a header is not a token")
		}
		for _, v := range values {
			v = field.Trim(v)
			if !field.Value(v) {
				return dst, errors.New("egress: the value of the header " + name + " contains a control character")
			}
			dst = append(append(dst, name...), ": "...)
			dst = append(append(dst, v...), "\r\n"...)
		}
	}
	if length > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		dst = strconv.AppendInt(append(dst, "Content-Length: "...), int64(length), 10)
		dst = append(dst, "\r\n"...)
	}
	return append(dst, "\r\n"...), nil
}

// responseHead is the content of a response's head.
type responseHead struct {
	status     int
	reason     string // with its number
	minor      int    // of HTTP/1.x
	header     http.Header
	length     int64 // -1 if unspecified
	chunked    bool
	persistent bool // the connection may carry another request
}

// headEnd is the length of the head at the front of b, with its blank line; 0 when it has
// not fully come. from is the beginning of the first line that was not searched yet.
func headEnd(b []byte, from int) (end, next int) {
	for {
		n := bytes.IndexByte(b[from:], '\n')
		if n < 0 {
			return 0, from
		}
		n += from
		if n == from || n == from+1 && b[from] == '\r' {
			return n + 1, n + 1
		}
		from = n + 1
	}
}

// parseHead parses a complete head. The header's strings alias text.
func parseHead(text string) (h responseHead, err error) {
	line, rest := field.CutLine(text)
	if err := h.statusLine(line); err != nil {
		return h, err
	}
	count := strings.Count(rest, "\n")
	h.header = make(http.Header, count)
	values := make([]string, 0, count)
	h.length = -1
	var codings, lengths int
	var closing, staying bool
	for {
		line, rest = field.CutLine(rest)
		if line == "" {
			break
		}
		colon := strings.IndexByte(line, ':')
		if colon <= 0 {
			return h, malformed("a header without a name")
		}
		name, ok := field.Name(line[:colon])
		if !ok { // also a line that begins with a space, which would continue the line before
			return h, malformed("the name of a header is not a token")
		}
		value := field.Trim(line[colon+1:])
		if !field.Value(value) {
			return h, malformed("the value of a header contains a control character")
		}
		switch name {
		case "Content-Length":
			if lengths++; lengths > 1 {
				return h, malformed("two lengths")
			}
			if h.length, ok = field.Length(value); !ok {
				return h, malformed("the length is not a number")
			}
		case "Transfer-Encoding":
			if codings++; codings > 1 || !strings.EqualFold(value, "chunked") {
				return h, malformed("a transfer coding other than chunked")
			}
			h.chunked = true
			continue // what follows does not concern the client
		case "Connection":
			closing = closing || field.Lists(value, "close")
			staying = staying || field.Lists(value, "keep-alive")
		}
		if before := h.header[name]; before != nil {
			h.header[name] = append(before, value)
			continue
		}
		values = append(values, value)
		h.header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	h.persistent = !closing && (h.minor > 0 || staying)
	if h.chunked {
		if h.minor == 0 {
			return h, malformed("a transfer coding in HTTP/1.0")
		}
		if lengths > 0 {
			// The coding counts (RFC 9112, 6.3). A proxy on the way may have decided otherwise,
			// so what follows on this connection is not trusted.
			h.length, h.persistent = -1, false
			delete(h.header, "Content-Length")
		}
	}
	return h, nil
}

func (h *responseHead) statusLine(line string) error {
	const start = "HTTP/1."
	if len(line) < len(start)+5 || line[:len(start)] != start || line[len(start)+1] != ' ' || line[len(start)]-'0' > 1 {
		return malformed("the status line is not HTTP/1.1's")
	}
	h.minor = int(line[len(start)] - '0')
	h.reason = line[len(start)+2:]
	if len(h.reason) > 3 && h.reason[3] != ' ' {
		return malformed("the status is not a number of three digits")
	}
	for _, c := range []byte(h.reason[:3]) {
		if c-'0' > 9 {
			return malformed("the status is not a number of three digits")
		}
		h.status = h.status*10 + int(c-'0')
	}
	if h.status < 100 || !field.Value(h.reason) {
		return malformed("the status line")
	}
	return nil
}
