// Package hint suggests the known name that a caller probably meant.
package hint

import "strings"

// maxName bounds the work for a name that a caller sent, in bytes.
const maxName = 64

// Nearest returns the known name with the smallest edit distance to name. Case, hyphens and
// underscores do not count, and a swap of two neighbors is one edit. ok is false if every
// known name differs in more than a third of its letters.
func Nearest(name string, known []string) (nearest string, ok bool) {
	if len(name) > maxName {
		return "", false
	}
	sent, least := plain(name), 0
	for _, k := range known {
		form := plain(k)
		longer := max(len(form), len(sent))
		if d := distance(sent, form); d <= max(1, longer/3) && d < longer && (!ok || d < least) {
			nearest, least, ok = k, d, true
		}
	}
	return nearest, ok
}

// DidYouMean returns the end of a sentence that suggests the nearest known name, or "".
func DidYouMean(name string, known []string) string {
	if nearest, ok := Nearest(name, known); ok {
		return "; did you mean " + nearest + "?"
	}
	return ""
}

func plain(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

// distance is the optimal string alignment distance of two texts, by bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			edit := 1
			if a[i-1] == b[j-1] {
				edit = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+edit)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Path returns the pattern of a route that a path probably meant: one that has as many
// segments and nearly the same words, or else the beginning of those with nearly the same
// first word. {name} in a pattern matches any segment.
func Path(path string, patterns []string) (nearest string, ok bool) {
	sent, least := strings.Split(strings.Trim(path, "/"), "/"), 0
	firsts := make([]string, len(patterns))
	for i, p := range patterns {
		words := strings.Split(strings.Trim(p, "/"), "/")
		firsts[i] = words[0]
		if d, near := apart(sent, words); near && (!ok || d < least) {
			nearest, least, ok = p, d, true
		}
	}
	if ok || sent[0] == "" {
		return nearest, ok
	}
	if first, near := Nearest(sent[0], firsts); near && first != sent[0] {
		return "/" + first, true
	}
	return "", false
}

// apart returns the sum of the distances of the words; near is false if one differs too much.
func apart(sent, words []string) (sum int, near bool) {
	if len(sent) != len(words) {
		return 0, false
	}
	for i, w := range words {
		if strings.HasPrefix(w, "{") && sent[i] != "" || sent[i] == w {
			continue
		}
		if _, ok := Nearest(sent[i], words[i:i+1]); !ok {
			return 0, false
		}
		sum += 1 + distance(plain(sent[i]), plain(w))
	}
	return sum, sum > 0
}

// SuggestPath is DidYouMean for a path.
func SuggestPath(path string, patterns []string) string {
	if nearest, ok := Path(path, patterns); ok {
		return "; did you mean " + nearest + "?"
	}
	return ""
}
