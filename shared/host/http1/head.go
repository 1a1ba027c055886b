package http1

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gateway/shared/wire/field"
)

// headerInfo has the values of the handler's header that the server also determines. They
// are written when more of the response is known, the others immediately.
type headerInfo struct {
	hasLength, hasCoding, hasType, encoded, hasDate bool

	length     string // Content-Length
	coding     string // Transfer-Encoding
	connection string
	kind       []string // Content-Type
	trailer    bool     // there are trailers
	trailers   []string // their names, as far as announced
}

// appendHeader appends the fields of a header except those that may change.
func (s *headerInfo) appendHeader(dst []byte, h http.Header) []byte {
	for name, values := range h {
		switch name {
		case "Content-Length":
			s.hasLength, s.length = true, first(values)
			continue
		case "Transfer-Encoding":
			s.coding = first(values)
			s.hasCoding = s.coding != ""
			continue
		case "Connection":
			s.connection = first(values)
			continue
		case "Content-Type":
			s.hasType, s.kind = true, values
			continue
		case "Content-Encoding":
			s.encoded = first(values) != ""
		case "Date":
			s.hasDate = true
		case "Trailer":
			s.trailer = len(values) > 0
			s.announce(values)
		}
		if strings.HasPrefix(name, http.TrailerPrefix) {
			s.trailer = true
			continue
		}
		for _, v := range values {
			dst = appendField(dst, name, v)
		}
	}
	return dst
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// appendField appends a line, or nothing if the name is invalid.
func appendField(dst []byte, name, value string) []byte {
	if !field.Token(name) {
		return dst
	}
	dst = append(append(dst, name...), ": "...)
	value = trimEnds(value)
	if strings.ContainsAny(value, "\r\n") {
		value = lineEnds.Replace(value)
	}
	return append(append(dst, value...), "\r\n"...)
}

// lineEnds would let a value inject a line.
var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// trimEnds removes spaces, tabs and line ends around a value.
func trimEnds(v string) string {
	if v != "" && (v[0] <= ' ' || v[len(v)-1] <= ' ') {
		return strings.Trim(v, " \t\r\n")
	}
	return v
}

func appendStatus(dst []byte, status int) []byte {
	if status == http.StatusOK {
		return append(dst, "HTTP/1.1 200 OK\r\n"...)
	}
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(status), 10)
	dst = append(dst, ' ')
	if text := http.StatusText(status); text != "" {
		dst = append(dst, text...)
	} else {
		dst = strconv.AppendInt(append(dst, "status code "...), int64(status), 10)
	}
	return append(dst, "\r\n"...)
}

// inform sends an informational head.
func (x *exchange) inform(status int) {
	out := appendStatus(x.a.out, status)
	for name, values := range x.header {
		if name == "Content-Length" || name == "Transfer-Encoding" {
			continue
		}
		for _, v := range values {
			out = appendField(out, name, v)
		}
	}
	x.a.out = append(out, crlf...)
	_ = x.push()
}

// commit completes the head. p is the start of the body, and all of it if the handler has
// returned.
func (x *exchange) commit(p []byte) {
	x.committed = true
	s := &x.info
	allowed := x.bodyAllowed()
	if x.done && !s.trailer && !s.hasCoding && allowed && !s.hasLength && (!x.head || len(p) > 0) {
		x.length = int64(len(p))
	}
	keepAlive := !x.c.s.closing.Load()
	x.last = x.wantsClose || s.connection == "close" || !keepAlive
	large := false
	if x.body.x != nil && !x.last && !x.duplex {
		var clean bool
		if clean, large = x.body.settle(); !clean {
			x.last = true
		}
		x.slowly = large
	}
	out := x.a.out
	if !s.hasDate {
		out = append(append(append(out, "Date: "...), date()...), "\r\n"...)
	}
	switch {
	case s.hasType && x.status != http.StatusNotModified:
		for _, v := range s.kind {
			out = appendField(out, "Content-Type", v)
		}
	case allowed && !s.hasType && !s.encoded && !s.hasCoding && len(p) > 0:
		out = appendField(out, "Content-Type", http.DetectContentType(p))
	}
	out = x.appendFraming(out, allowed)
	// The handler's value applies unless it would keep a connection open that must be
	// closed.
	if s.connection != "" && !large && (!x.last || keepAlive && field.Lists(s.connection, "close")) {
		out = appendField(out, "Connection", s.connection)
	} else if x.last {
		out = append(out, "Connection: close\r\n"...)
	}
	x.a.out = append(out, crlf...)
}

// appendFraming appends the fields that delimit the body.
func (x *exchange) appendFraming(out []byte, allowed bool) []byte {
	s := &x.info
	if !allowed {
		return out
	}
	if x.length >= 0 && (!s.hasCoding || s.coding == "identity") {
		out = strconv.AppendInt(append(out, "Content-Length: "...), x.length, 10)
		return append(out, crlf...)
	}
	if x.head {
		return out
	}
	if s.coding == "identity" { // closing the connection ends the body
		x.last = true
		return out
	}
	if s.hasCoding && s.coding != "chunked" {
		out = appendField(out, "Transfer-Encoding", s.coding)
	}
	x.chunked = true
	return append(out, "Transfer-Encoding: chunked\r\n"...)
}

// announce takes the names of trailers from the values of the field Trailer.
func (s *headerInfo) announce(values []string) {
	for _, v := range values {
		for name := range strings.SplitSeq(v, ",") {
			if name = http.CanonicalHeaderKey(trimEnds(name)); allowedTrailer(name) {
				s.trailers = append(s.trailers, name)
			}
		}
	}
}

// allowedTrailer reports whether a field is allowed as a trailer (RFC 9110, 6.5.1): not one
// that determines how the message or the request is interpreted.
func allowedTrailer(name string) bool {
	switch name {
	case "", "Authorization", "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Expect",
		"Host", "Keep-Alive", "Max-Forwards", "Pragma", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Range", "Realm",
		"Te", "Trailer", "Transfer-Encoding", "Www-Authenticate":
		return false
	}
	return !strings.HasPrefix(name, "If-")
}

// appendTrailers appends the trailers of a chunked body. Unannounced ones have the prefix
// of http.TrailerPrefix.
func (s *headerInfo) appendTrailers(dst []byte, h http.Header) []byte {
	for name, values := range h {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			for _, v := range values {
				dst = appendField(dst, name, v)
			}
		}
	}
	for _, name := range s.trailers {
		for _, v := range h[name] {
			dst = appendField(dst, name, v)
		}
	}
	return dst
}

// dated is a second formatted for the field Date.
type dated struct {
	unix int64
	text string
}

var lastDate atomic.Pointer[dated]

// date returns the time in the format of the field Date.
func date() string {
	now := time.Now()
	d := lastDate.Load()
	if d == nil || d.unix != now.Unix() {
		d = &dated{unix: now.Unix(), text: now.UTC().Format(http.TimeFormat)}
		lastDate.Store(d)
	}
	return d.text
}
