package vendors

import (
	"slices"
	"sort"
	"strings"
)

// span is a part of a text in characters, and its replacement.
type span struct {
	start, end int
	by         string
}

// masked returns a text with its spans replaced. Overlapping spans become one; a span that
// reaches outside of the text is ignored.
func masked(text string, spans []span) string {
	letters := []rune(text)
	spans = slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return s.start < 0 || s.end <= s.start || s.end > len(letters) })
	sort.Slice(spans, func(i, j int) bool { return spans[i].start < spans[j].start })
	var b strings.Builder
	from := 0
	for _, s := range spans {
		if s.start < from { // it begins within the span before
			from = max(from, s.end)
			continue
		}
		b.WriteString(string(letters[from:s.start]))
		b.WriteString(s.by)
		from = s.end
	}
	b.WriteString(string(letters[from:]))
	return b.String()
}
