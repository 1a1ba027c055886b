package components

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// words are the words of a name, each with an upper-case initial.
type words []string

// split splits a name in any spelling: workspace_id, createConfig and hit-rate.
func split(name string) words {
	var out words
	start, in := 0, camel(name)
	for i, r := range in {
		if i > start && unicode.IsUpper(r) && !unicode.IsUpper(rune(in[i-1])) {
			out, start = append(out, in[start:i]), i
		}
	}
	if in != "" {
		out = append(out, in[start:])
	}
	return out
}

// camel turns workspace_id and createConfig into WorkspaceId and CreateConfig.
func camel(s string) string {
	var b strings.Builder
	upper := true
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			upper = true
			continue
		}
		if upper {
			r, upper = unicode.ToUpper(r), false
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (w words) String() string { return strings.Join(w, "") }

// and returns the words followed by others.
func (w words) and(more ...string) words { return append(slices.Clip(w), more...) }

// singular names an entry of what the words name.
func (w words) singular() words {
	if len(w) == 0 {
		return w
	}
	last := w[len(w)-1]
	if singular(last) == last {
		return w.and("Item")
	}
	return w[:len(w)-1].and(singular(last))
}

// once removes repetitions: GraphsGraphsCost is GraphsCost.
func (w words) once() words {
	out := slices.Clone(w)
	for size := 1; size <= 3; size++ {
		for i := 0; i+2*size <= len(out); {
			if slices.EqualFunc(out[i:i+size], out[i+size:i+2*size], same) {
				out = slices.Delete(out, i, i+size)
				continue
			}
			i++
		}
	}
	return out
}

// common returns the longest sequence of words that all names have, in their order.
func common(names []words) words {
	var out words
	for i, name := range names {
		if i == 0 {
			out = name
			continue
		}
		out = commonOfTwo(out, name)
	}
	return out
}

func commonOfTwo(a, b words) words {
	best := make([][]words, len(a)+1)
	for i := range best {
		best[i] = make([]words, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			best[i][j] = longer(best[i+1][j], best[i][j+1])
			if same(a[i], b[j]) {
				best[i][j] = longer(append(words{shorter(a[i], b[j])}, best[i+1][j+1]...), best[i][j])
			}
		}
	}
	return best[0][0]
}

func longer(a, b words) words {
	if len(b) > len(a) {
		return b
	}
	return a
}

func shorter(a, b string) string {
	if len(b) < len(a) {
		return b
	}
	return a
}

// byLength orders names by their length, and those of a length by the alphabet.
func byLength(a, b words) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a.String(), b.String()))
}

// same reports whether two words are equal but for the plural.
func same(a, b string) bool { return a == b || singular(a) == singular(b) }

// singular names an entry of a list or a map.
func singular(word string) string {
	switch stem, ok := strings.CutSuffix(word, "s"); {
	case strings.HasSuffix(word, "ies") && len(word) > 4:
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "xes"), strings.HasSuffix(word, "tches"):
		return strings.TrimSuffix(word, "es")
	case ok && len(stem) > 2 && !strings.HasSuffix(stem, "s") && !strings.HasSuffix(stem, "u") && !strings.HasSuffix(stem, "i"):
		return stem
	}
	return word
}

// verbs begin the names of operations on a resource.
var verbs = strings.Fields("Accept Add Authorize Call Cancel Check Collect Compact Confirm Connect Consume Count Create Decide Delete Describe Download End Explain Fetch Fork Get List Listen Patch Ping " +
	"Promote Publish Read Register Replace Resend Retrieve Revoke Rotate Send Set Share Show Start Test Unshare Update Upload Verify")

// verb is the index of the verb in the name of an operation, or -1. Names of operations of
// another protocol begin with its name: ScimCreateUser.
func (w words) verb() int {
	for i := range min(len(w)-1, 2) {
		if slices.Contains(verbs, w[i]) {
			return i
		}
	}
	return -1
}

// resource is the name of what an operation acts on: WorkspaceUser of UpdateWorkspaceUser.
func (w words) resource() words {
	if i := w.verb(); i >= 0 {
		return slices.Delete(slices.Clone(w), i, i+1)
	}
	return w
}

// named reports whether the words name something: one is neither a verb nor a plain role.
func (w words) named() bool {
	return slices.ContainsFunc(w, func(word string) bool {
		return !slices.Contains(verbs, word) && !slices.Contains(roles, word)
	})
}

// roles are words that say nothing without others.
var roles = []string{"Data", "Error", "Id", "Input", "Item", "Key", "Name", "Request", "Response", "Type", "Value"}

// operationName is the name of an operation, the same for its aliases at other paths.
func operationName(op map[string]any) words {
	id, _ := op["operationId"].(string)
	return split(alias.ReplaceAllString(id, ""))
}

// alias is the end of the ids of an operation at other paths.
var alias = regexp.MustCompile(`Alias\d+$`)
