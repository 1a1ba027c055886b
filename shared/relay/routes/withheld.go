package routes

import (
	"bufio"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Held is a row of the table of paths that are not forwarded with stored credentials.
type Held struct {
	Row
	Providers []string // ids; nil: all
}

//go:embed withheld.txt
var withheldText string

// Withheld are the rows, in the order of the file.
var Withheld = sync.OnceValue(func() []Held {
	rows, err := parseWithheld(withheldText)
	if err != nil {
		panic("reserved: " + err.Error()) // a test reads the same file
	}
	return rows
})

func parseWithheld(text string) (rows []Held, err error) {
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
		h := Held{Row: Row{Path: f[0], Why: strings.Join(f[2:], " ")}}
		if f[1] != "*" {
			h.Providers = strings.Split(f[1], ",")
		}
		rows = append(rows, h)
	}
	return rows, nil
}

var withheldByFirst = sync.OnceValue(func() map[string][]Held {
	out := map[string][]Held{}
	for _, h := range Withheld() {
		first, _, _ := strings.Cut(h.Path[1:], "/")
		out[first] = append(out[first], h)
	}
	return out
})

// Withholds returns the reason why a path of a provider, in any encoding, is not forwarded with
// a stored credential; "" if it is.
func Withholds(escapedPath, provider string) (why string) {
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
			return h.Why
		}
	}
	return ""
}

// versions may precede a path if a provider's base URL has none. Azure prepends openai to them.
var versions = map[string]bool{"v1": true, "v1beta": true, "v1alpha": true, "openai": true}
