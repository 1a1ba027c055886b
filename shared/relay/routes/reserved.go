package routes

import (
	"bufio"
	_ "embed"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Row is one row of the table.
type Row struct {
	Path   string // below the base URL; * is one segment, ** at the end any number
	Passes bool   // it may be passed through
	Reason string
}

//go:embed reserved.txt
var text string

// Reserved returns the table, in the order of the file.
var Reserved = sync.OnceValue(func() []Row {
	rows, err := parse(text)
	if err != nil {
		panic("reserved: " + err.Error()) // a test reads the same file
	}
	return rows
})

func parse(text string) (rows []Row, err error) {
	seen := map[string]bool{}
	sc := bufio.NewScanner(strings.NewReader(text))
	for n := 1; sc.Scan(); n++ {
		if line := strings.TrimSpace(sc.Text()); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(sc.Text())
		if len(f) < 3 || f[1] != "reserved" && f[1] != "passes" {
			return nil, fmt.Errorf("reserved.txt:%d: want path, reserved or passes, and a reason", n)
		}
		if f[0][0] != '/' || f[0] != strings.ToLower(f[0]) || seen[f[0]] {
			return nil, fmt.Errorf("reserved.txt:%d: %s is not a path in lower case, or is a duplicate", n, f[0])
		}
		seen[f[0]] = true
		rows = append(rows, Row{Path: f[0], Passes: f[1] == "passes", Reason: strings.Join(f[2:], " ")})
	}
	return rows, nil
}

// byFirst are the rows by their first segment, which is never a pattern.
var byFirst = sync.OnceValue(func() map[string][]Row {
	out := map[string][]Row{}
	for _, r := range Reserved() {
		first, _, _ := strings.Cut(r.Path[1:], "/")
		out[first] = append(out[first], r)
	}
	return out
})

// IsReserved reports whether an escaped path below the base URL is reserved, unchanged or as another
// parser could read it.
func IsReserved(escapedPath string) bool {
	var memory [16]string
	segments := appendSegments(memory[:0], escapedPath)
	for len(segments) > 1 && (segments[0] == "v1" || segments[0] == "v2") {
		segments = segments[1:] // the client's base URL includes the version, and its path too
	}
	if len(segments) == 0 {
		return false
	}
	best, rank, found := Row{}, 0, false
	for _, r := range byFirst()[segments[0]] {
		if k, ok := r.matches(segments); ok && (!found || k > rank) {
			best, rank, found = r, k, true
		}
	}
	return found && !best.Passes
}

// matches also returns how specific the row is.
func (r *Row) matches(segments []string) (rank int, ok bool) {
	rest := r.Path[1:]
	for i := 0; ; i++ {
		pattern, after, more := strings.Cut(rest, "/")
		if pattern == "**" {
			return rank, true
		}
		if i >= len(segments) || pattern != "*" && pattern != segments[i] {
			return 0, false
		}
		if rank += 2; pattern == "*" {
			rank--
		}
		if rest = after; !more {
			return rank + 1, i == len(segments)-1
		}
	}
}

// appendSegments splits a path into segments as the most lenient reader would: unescaped as
// often as it was escaped, in lower case, without parameters, dots and empty segments.
func appendSegments(dst []string, path string) []string {
	if strings.IndexByte(path, '%') >= 0 {
		path = unescape(path)
	}
	for path != "" {
		var seg string
		if i := strings.IndexAny(path, `/\`); i >= 0 {
			seg, path = path[:i], path[i+1:]
		} else {
			seg, path = path, ""
		}
		if i := strings.IndexAny(seg, ";?#"); i >= 0 {
			seg = seg[:i]
		}
		switch seg = strings.TrimFunc(seg, blank); {
		case strings.Trim(seg, ".") != "":
			dst = append(dst, strings.ToLower(strings.TrimRight(seg, ".")))
		case seg == ".." && len(dst) > 0:
			dst = dst[:len(dst)-1]
		}
	}
	return dst
}

// maxEscapes is how often a path may have been escaped.
const maxEscapes = 4

func unescape(path string) string {
	for range maxEscapes {
		next := unescapeOnce(path)
		if next == path {
			break
		}
		path = next
	}
	return path
}

// unescapeOnce leaves invalid escapes unchanged.
func unescapeOnce(s string) string {
	if out, err := url.PathUnescape(s); err == nil {
		return out
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if one, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(one)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// blank are characters at the ends of a segment that some would drop.
func blank(r rune) bool { return r <= ' ' || r == 0x7f }

// WithheldPath is a row of the table of paths that are not forwarded with stored credentials.
type WithheldPath struct {
	Row
	Providers []string // ids; nil: all
}

//go:embed withheld.txt
var withheldText string

// WithheldPaths are the rows, in the order of the file.
var WithheldPaths = sync.OnceValue(func() []WithheldPath {
	rows, err := parseWithheld(withheldText)
	if err != nil {
		panic("reserved: " + err.Error()) // a test reads the same file
	}
	return rows
})

func parseWithheld(text string) (rows []WithheldPath, err error) {
	seen := map[string]bool{}
	sc := bufio.NewScanner(strings.NewReader(text))
	for n := 1; sc.Scan(); n++ {
		f := strings.Fields(sc.Text())
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		if len(f) < 3 || f[0][0] != '/' || f[0] != strings.ToLower(f[0]) || seen[f[0]] {
			return nil, fmt.Errorf("withheld.txt:%d: want a unique path in lower case, providers, and a reason", n)
		}
		seen[f[0]] = true
		h := WithheldPath{Row: Row{Path: f[0], Reason: strings.Join(f[2:], " ")}}
		if f[1] != "*" {
			h.Providers = strings.Split(f[1], ",")
		}
		rows = append(rows, h)
	}
	return rows, nil
}

var withheldByFirst = sync.OnceValue(func() map[string][]WithheldPath {
	out := map[string][]WithheldPath{}
	for _, h := range WithheldPaths() {
		first, _, _ := strings.Cut(h.Path[1:], "/")
		out[first] = append(out[first], h)
	}
	return out
})

// WithheldReason returns the reason why a path of a provider, in any encoding, is not forwarded with
// a stored credential; "" if it is.
func WithheldReason(escapedPath, provider string) (why string) {
	var memory [16]string
	segments := appendSegments(memory[:0], escapedPath)
	for len(segments) > 1 && versions[segments[0]] {
		segments = segments[1:]
	}
	if len(segments) == 0 {
		return ""
	}
	for _, h := range withheldByFirst()[segments[0]] {
		if h.Providers != nil && !slices.Contains(h.Providers, provider) {
			continue
		}
		if _, ok := h.matches(segments); ok {
			return h.Reason
		}
	}
	return ""
}

// versions may precede a path if a provider's base URL has none. Azure prepends openai to them.
var versions = map[string]bool{"v1": true, "v1beta": true, "v1alpha": true, "openai": true}
