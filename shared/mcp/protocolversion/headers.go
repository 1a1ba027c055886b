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

// These mark header values that are encoded because a header cannot hold them as they are.
const (
	markBegin = "=?base64?"
	markEnd   = "?="
)

// EncodeHeader writes a text as the value of Mcp-Name or Mcp-Param.
func EncodeHeader(s string) string {
	if visible(s) && !(strings.HasPrefix(s, markBegin) && strings.HasSuffix(s, markEnd)) {
		return s
	}
	return markBegin + base64.StdEncoding.EncodeToString([]byte(s)) + markEnd
}

// DecodeHeader reads such a value.
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

// visible tells whether a text is of visible ASCII, with spaces inside only.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s == strings.TrimSpace(s)
}

// Mark is an argument of a tool that a header repeats.
type Mark struct {
	Path   []string
	Header string // the whole name, in the spelling of net/http
}

const paramPrefix = "Mcp-Param-"

// MarkedBy is the member of a schema that marks an argument.
const MarkedBy = "x-mcp-header"

// property is what is read of a schema.
type property struct {
	Type       json.RawMessage      `json:"type"`
	Header     json.RawMessage      `json:"x-mcp-header"`
	Properties map[string]*property `json:"properties"`
}

// Marks are the marked arguments of a tool's inputSchema; ok is false where a mark breaks
// the rules of the protocol: such a tool is not offered.
func Marks(schema json.RawMessage) (marks []Mark, ok bool) {
	if !bytes.Contains(schema, []byte(MarkedBy)) {
		return nil, true
	}
	var root property
	if json.Unmarshal(schema, &root) != nil {
		return nil, true // nothing can be said of it
	}
	seen := map[string]bool{}
	ok = root.marks(nil, seen, &marks)
	return marks, ok
}

func (p *property) marks(path []string, seen map[string]bool, out *[]Mark) bool {
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
			if json.Unmarshal(below.Header, &header) != nil || !token(header) || seen[strings.ToLower(header)] {
				return false
			}
			if json.Unmarshal(below.Type, &kind) != nil || kind != "string" && kind != "integer" && kind != "boolean" {
				return false
			}
			seen[strings.ToLower(header)] = true
			*out = append(*out, Mark{at, http.CanonicalHeaderKey(paramPrefix + header)})
		}
		if !below.marks(at, seen, out) {
			return false
		}
	}
	return true
}

// token tells whether a text may be the name of a header.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}

// value is the text that a header repeats; ok is false where there is nothing to
// repeat: the argument is absent or null, or none that a header can hold.
func (m *Mark) value(arguments json.RawMessage) (text string, ok bool) {
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
	return whole(string(at))
}

// whole writes an integer in its one canonical way; false for numbers that are none, or
// that some readers cannot hold.
func whole(s string) (string, bool) {
	const most = 1<<53 - 1
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != float64(int64(f)) || f > most || f < -most {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// CheckParams holds the headers of a call of a tool against its arguments.
func CheckParams(h http.Header, marks []Mark, arguments json.RawMessage) *Refusal {
	for i := range marks {
		m := &marks[i]
		want, given := m.value(arguments)
		if !given {
			continue
		}
		got, ok := DecodeHeader(one(h, m.Header))
		if n, number := whole(got); number && got != want {
			got = n
		}
		if !ok || len(h[m.Header]) != 1 || got != want {
			return refuse(http.StatusBadRequest, CodeHeader, strings.ToLower(m.Header)+" must be there once and be the argument "+strings.Join(m.Path, "."))
		}
	}
	return nil
}

// SetParams writes the headers of a call of a tool.
func SetParams(h http.Header, marks []Mark, arguments json.RawMessage) {
	for i := range marks {
		if v, given := marks[i].value(arguments); given {
			h[marks[i].Header] = []string{EncodeHeader(v)}
		}
	}
}

// SetHeaders writes the headers of a request without session.
func (r *Request) SetHeaders(h http.Header) {
	h[mcp.HeaderMethod] = []string{r.Method}
	if named[r.Method] != "" {
		h[mcp.HeaderName] = []string{EncodeHeader(r.Name())}
	}
}
