package protocolversion

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"gateway/shared/mcp"
)

// Markers of base64-encoded header values.
const (
	markBegin = "=?base64?"
	markEnd   = "?="
)

// EncodeHeader encodes a string as a value of Mcp-Name or Mcp-Param.
func EncodeHeader(s string) string {
	if visible(s) && !(strings.HasPrefix(s, markBegin) && strings.HasSuffix(s, markEnd)) {
		return s
	}
	return markBegin + base64.StdEncoding.EncodeToString([]byte(s)) + markEnd
}

// DecodeHeader decodes such a value.
func DecodeHeader(v string) (string, bool) {
	inner, marked := strings.CutPrefix(v, markBegin)
	if marked {
		inner, marked = strings.CutSuffix(inner, markEnd)
	}
	if !marked {
		return v, visible(v)
	}
	raw, err := base64.StdEncoding.DecodeString(inner)
	return string(raw), err == nil && utf8.Valid(raw)
}

// visible reports whether a string is printable ASCII without surrounding spaces.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s == strings.TrimSpace(s)
}

// HeaderParam is a tool argument that is mirrored in a header.
type HeaderParam struct {
	Path   []string
	Header string // full name in the spelling of net/http
}

const paramPrefix = "Mcp-Param-"

// HeaderAnnotation is the schema field that marks a mirrored argument.
const HeaderAnnotation = "x-mcp-header"

// property is the part of a schema that matters here.
type property struct {
	Type       json.RawMessage      `json:"type"`
	Header     json.RawMessage      `json:"x-mcp-header"`
	Properties map[string]*property `json:"properties"`
}

// HeaderParams returns the mirrored arguments of an inputSchema. ok is false if an annotation
// violates the protocol: such a tool is not listed.
func HeaderParams(schema json.RawMessage) (marks []HeaderParam, ok bool) {
	if !bytes.Contains(schema, []byte(HeaderAnnotation)) {
		return nil, true
	}
	var root property
	if json.Unmarshal(schema, &root) != nil {
		return nil, true // an unreadable schema has no annotations
	}
	seen := map[string]bool{}
	ok = root.collect(nil, seen, &marks)
	return marks, ok
}

func (p *property) collect(path []string, seen map[string]bool, out *[]HeaderParam) bool {
	if len(path) > maxDepth {
		return false
	}
	for name, below := range p.Properties {
		if below == nil {
			continue
		}
		at := append(path[:len(path):len(path)], name)
		if below.Header != nil {
			var header, kind string
			if json.Unmarshal(below.Header, &header) != nil || !isToken(header) || seen[strings.ToLower(header)] {
				return false
			}
			if json.Unmarshal(below.Type, &kind) != nil || kind != "string" && kind != "integer" && kind != "boolean" {
				return false
			}
			seen[strings.ToLower(header)] = true
			*out = append(*out, HeaderParam{at, http.CanonicalHeaderKey(paramPrefix + header)})
		}
		if !below.collect(at, seen, out) {
			return false
		}
	}
	return true
}

// isToken reports whether a string is a valid header name.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}

// value returns the header value of an argument. ok is false if the argument is absent, null or
// not representable.
func (m *HeaderParam) value(arguments json.RawMessage) (text string, ok bool) {
	at := arguments
	for _, name := range m.Path {
		var members map[string]json.RawMessage
		if json.Unmarshal(at, &members) != nil {
			return "", false
		}
		if at = members[name]; at == nil {
			return "", false
		}
	}
	switch at[0] {
	case '"':
		ok = json.Unmarshal(at, &text) == nil
		return text, ok
	case 't', 'f':
		return string(at), true
	case 'n', '{', '[':
		return "", false
	}
	return formatInteger(string(at))
}

// formatInteger returns the canonical form of an integer. ok is false for other numbers and for
// integers that a float64 cannot represent.
func formatInteger(s string) (string, bool) {
	const most = 1<<53 - 1
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != float64(int64(f)) || f > most || f < -most {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// CheckParams compares the headers of a tool call with its arguments.
func CheckParams(h http.Header, marks []HeaderParam, arguments json.RawMessage) *Rejection {
	for i := range marks {
		m := &marks[i]
		want, present := m.value(arguments)
		if !present {
			continue
		}
		got, ok := DecodeHeader(one(h, m.Header))
		if n, number := formatInteger(got); number && got != want {
			got = n
		}
		if !ok || len(h[m.Header]) != 1 || got != want {
			return reject(http.StatusBadRequest, CodeHeader, strings.ToLower(m.Header)+" must be sent once and equal the argument "+strings.Join(m.Path, "."))
		}
	}
	return nil
}

// SetParams sets the headers of a tool call.
func SetParams(h http.Header, marks []HeaderParam, arguments json.RawMessage) {
	for i := range marks {
		if v, present := marks[i].value(arguments); present {
			h[marks[i].Header] = []string{EncodeHeader(v)}
		}
	}
}

// SetHeaders sets the headers of a stateless request.
func (r *Request) SetHeaders(h http.Header) {
	h[mcp.HeaderMethod] = []string{r.Method}
	if nameFields[r.Method] != "" {
		h[mcp.HeaderName] = []string{EncodeHeader(r.Name())}
	}
}
