// Package mask replaces parts of texts by tokens such as {{EMAIL_ADDRESS_1}} and restores them
// in the model's response, even across the pieces of a stream. A value has the same token in
// all texts of a message, so that a model can distinguish people without identifying them.
package mask

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gateway/shared/wire"
)

// Span is a part of a text, in bytes, with the label of its token. Labels are capital letters
// and underscores.
type Span struct {
	Start, End int
	Label      string
}

// Length limits of tokens.
const (
	maxLabel  = 40
	maxDigits = 9
)

// Texts replaces the spans of each text by tokens; overlapping spans are replaced together, by
// the token of the first. Tokens are numbered for each label and value. Numbers continue after
// those of tokens that the texts already contain, so that no two values share one. The result
// of a text without spans is nil. values maps tokens to the replaced parts.
func Texts(texts []string, spans [][]Span) (out []*string, values map[string]string) {
	used := map[string]int{}
	for _, t := range texts {
		highest(t, used)
	}
	values = map[string]string{}
	known := map[[2]string]string{}
	out = make([]*string, len(texts))
	for i, t := range texts {
		if len(spans[i]) == 0 {
			continue
		}
		var b strings.Builder
		b.Grow(len(t) + 8*len(spans[i]))
		from := 0
		for _, s := range merge(spans[i]) {
			value := t[s.Start:s.End]
			token, ok := known[[2]string{s.Label, value}]
			if !ok {
				used[s.Label]++
				token = "{{" + s.Label + "_" + strconv.Itoa(used[s.Label]) + "}}"
				known[[2]string{s.Label, value}] = token
				values[token] = value
			}
			b.WriteString(t[from:s.Start])
			b.WriteString(token)
			from = s.End
		}
		b.WriteString(t[from:])
		text := b.String()
		out[i] = &text
	}
	return out, values
}

// merge returns spans in order and merges overlapping ones.
func merge(spans []Span) []Span {
	apart := slices.IsSortedFunc(spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	for i := 1; i < len(spans) && apart; i++ {
		apart = spans[i-1].End <= spans[i].Start
	}
	if apart {
		return spans
	}
	spans = slices.Clone(spans)
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].Start < spans[j].Start })
	out := spans[:1]
	for _, s := range spans[1:] {
		if last := &out[len(out)-1]; s.Start < last.End {
			last.End = max(last.End, s.End)
			continue
		}
		out = append(out, s)
	}
	return out
}

// highest records the highest number of each label among the tokens of a text.
func highest(text string, used map[string]int) {
	for i := strings.Index(text, "{{"); i >= 0; {
		n, whole := token(text[i:])
		if whole {
			label, number, _ := cutLast(text[i+2 : i+n-2])
			if k, err := strconv.Atoi(number); err == nil && k > used[label] {
				used[label] = k
			}
		}
		next := strings.Index(text[i+max(n, 1):], "{{")
		if next < 0 {
			return
		}
		i += max(n, 1) + next
	}
}

// cutLast splits at the last underscore.
func cutLast(s string) (label, number string, ok bool) {
	i := strings.LastIndexByte(s, '_')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// token parses a token at the start of s. If whole is set, it has n bytes. Otherwise n is 0, or
// len(s) if s may be the beginning of a token.
func token(s string) (n int, whole bool) {
	i := 0
	more := func() (int, bool) { return len(s), false }
	for ; i < 2; i++ {
		if i == len(s) {
			return more()
		}
		if s[i] != '{' {
			return 0, false
		}
	}
	from := i
	for i < len(s) && (s[i] >= 'A' && s[i] <= 'Z' || s[i] == '_') {
		i++
	}
	switch {
	case i-from > maxLabel || i == from && i < len(s):
		return 0, false
	case i == len(s):
		return more()
	case s[i-1] != '_' || i-from < 2:
		return 0, false
	}
	from = i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	switch {
	case i-from > maxDigits || i == from && i < len(s):
		return 0, false
	case i == len(s):
		return more()
	}
	for end := i + 2; i < end; i++ {
		if i == len(s) {
			return more()
		}
		if s[i] != '}' {
			return 0, false
		}
	}
	return i, true
}

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

// Mask replaces values by their tokens in a body for logs: the reverse of JSON. It also finds
// values in JSON within strings.
func (r *Restorer) Mask(body []byte) []byte {
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
	values  map[string]string
	inJSON  bool
	pending string
}

// Push accepts the next piece and returns what can be sent now.
func (s *Stream) Push(piece string) string {
	if len(s.values) == 0 || s.pending == "" && strings.IndexByte(piece, '{') < 0 {
		return piece
	}
	text := s.pending + piece
	s.pending = ""
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
			s.pending = strings.Clone(text)
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
	held := s.pending
	s.pending = ""
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
