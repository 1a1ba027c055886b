package mask

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gateway/shared/wire"
)

// Restorer replaces tokens by their values. It does not rescan values: a value that looks like
// a token stays. Unknown tokens stay as well. The zero value has no tokens.
type Restorer struct {
	values map[string]string
}

// Add adds values, as Texts returns them.
func (r *Restorer) Add(values map[string]string) {
	if r.values == nil {
		r.values = make(map[string]string, len(values))
	}
	maps.Copy(r.values, values)
}

// Empty reports whether there is nothing to restore.
func (r *Restorer) Empty() bool { return len(r.values) == 0 }

// Text restores values in a complete text.
func (r *Restorer) Text(s string) string {
	st := r.Stream(false)
	out := st.Push(s)
	return out + st.End()
}

// JSON restores values within the strings of JSON.
func (r *Restorer) JSON(raw []byte) []byte {
	st := r.Stream(true)
	out := st.Push(string(raw))
	return []byte(out + st.End())
}

// Hide replaces values by their tokens in a body for logs: the reverse of JSON. It also finds
// values in JSON within strings.
func (r *Restorer) Hide(body []byte) []byte {
	if r.Empty() {
		return body
	}
	tokens := slices.SortedFunc(maps.Keys(r.values), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(r.values[b]), len(r.values[a])), cmp.Compare(a, b)) // the longest value first
	})
	var pairs []string
	for _, token := range tokens {
		for value, depth := r.values[token], 0; depth < 3 && value != ""; depth++ {
			pairs = append(pairs, value, token)
			escaped := wire.AppendJSONString(nil, []byte(value))
			value = string(escaped[1 : len(escaped)-1])
		}
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(body)))
}

// Stream returns a restorer for a text that arrives in pieces. With inJSON the text is JSON,
// such as the arguments of a tool, so values are escaped.
func (r *Restorer) Stream(inJSON bool) *Stream { return &Stream{values: r.values, inJSON: inJSON} }

// Stream restores one text that arrives in pieces. It delays only what may be the beginning of
// a token, at most about 60 bytes.
type Stream struct {
	values map[string]string
	inJSON bool
	held   string
}

// Push accepts the next piece and returns what can be sent now.
func (s *Stream) Push(piece string) string {
	if len(s.values) == 0 || s.held == "" && strings.IndexByte(piece, '{') < 0 {
		return piece
	}
	text := s.held + piece
	s.held = ""
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '{')
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		text = text[i:]
		n, whole := token(text)
		switch {
		case whole:
			b.WriteString(s.value(text[:n]))
		case n > 0:
			s.held = strings.Clone(text)
			return b.String()
		default:
			n = 1
			b.WriteByte('{')
		}
		text = text[n:]
	}
}

// End returns the delayed text after the last piece.
func (s *Stream) End() string {
	held := s.held
	s.held = ""
	return held
}

func (s *Stream) value(token string) string {
	v, ok := s.values[token]
	switch {
	case !ok:
		return token
	case s.inJSON:
		quoted, err := json.Marshal(v)
		if err != nil {
			return token
		}
		return string(quoted[1 : len(quoted)-1])
	}
	return v
}
