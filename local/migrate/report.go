package migrate

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gateway/local/document"
)

// Status is the result for a key of the source.
type Status string

// The statuses of a report.
const (
	Mapped    Status = "mapped"
	Changed   Status = "changed"
	NotMapped Status = "not mapped"
)

// Line is what the report states about one key.
type Line struct {
	Place  string `json:"place,omitempty"` // in the source file
	Key    string `json:"key"`
	Status Status `json:"status"`
	Note   string `json:"note,omitempty"` // to what, how, or why not
}

// Report has a line for every key of a source.
type Report struct {
	Lines []Line   `json:"lines"`
	Todo  []string `json:"todo,omitempty"` // steps that remain to be done manually
}

// Count returns how many lines have a status.
func (r *Report) Count(s Status) (n int) {
	for _, l := range r.Lines {
		if l.Status == s {
			n++
		}
	}
	return n
}

// Print writes the report as text.
func (r *Report) Print(w io.Writer) {
	for _, l := range r.Lines {
		text := fmt.Sprintf("%-10s  %s", l.Status, l.Key)
		if l.Place != "" {
			text += "  (" + l.Place + ")"
		}
		if l.Note != "" {
			text += "  " + l.Note
		}
		fmt.Fprintln(w, text)
	}
	fmt.Fprintf(w, "\n%d keys: %d mapped, %d changed, %d not mapped\n", len(r.Lines), r.Count(Mapped), r.Count(Changed), r.Count(NotMapped))
	for _, t := range r.Todo {
		fmt.Fprintln(w, "to do:", t)
	}
}

// mark is the result of a rule for a value.
type mark struct {
	status Status
	note   string
}

// marks collect what the rules state about the values of a file.
type marks map[*document.Node]mark

func (m marks) mapped(n *document.Node, note string)  { m.set(n, Mapped, note) }
func (m marks) changed(n *document.Node, note string) { m.set(n, Changed, note) }
func (m marks) not(n *document.Node, note string)     { m.set(n, NotMapped, note) }

// set marks a value and everything in it that no other rule marks. The last rule wins.
func (m marks) set(n *document.Node, s Status, note string) {
	if n != nil {
		m[n] = mark{s, note}
	}
}

// noRule is the note of a key that no rule reads.
const noRule = "no rule knows this key"

// lines reports every key of a file, in its order.
func (m marks) lines(root *document.Node) []Line {
	var out []Line
	m.walk(root, "", mark{NotMapped, noRule}, &out)
	return out
}

func (m marks) walk(n *document.Node, at string, inherited mark, out *[]Line) {
	if own, ok := m[n]; ok {
		inherited = own
	} else if !strings.Contains(at, ".") && (n.Kind() == document.Null || n.Kind() == document.Map && len(n.Fields()) == 0) {
		inherited = mark{Mapped, "empty"} // a section without settings
	}
	leaf := true
	for _, f := range n.Fields() {
		name := f.Name
		if at != "" {
			name = at + "." + f.Name
		}
		leaf = false
		m.walk(f.Value, name, inherited, out)
	}
	each := slices.ContainsFunc(n.Items(), func(item *document.Node) bool {
		return item.Kind() == document.Map || item.Kind() == document.List || m.marked(item)
	})
	for i, item := range n.Items() {
		if each {
			leaf = false
			m.walk(item, fmt.Sprintf("%s[%d]", at, i), inherited, out)
		}
	}
	if leaf && at != "" {
		*out = append(*out, Line{n.At.String(), at, inherited.status, inherited.note})
	}
}

func (m marks) marked(n *document.Node) bool { _, ok := m[n]; return ok }

// identifier makes a text of letters, digits and single dashes, as slugs are.
func identifier(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}
