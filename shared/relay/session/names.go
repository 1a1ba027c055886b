package session

import (
	"slices"
	"strings"
)

// Names returns the names by which a client may repeat the model of its session: those that
// it opened the session by, each with and without the saved provider. slug is the saved
// provider; "" for none.
func Names(slug string, opened ...string) (names []string) {
	for _, name := range opened {
		if name == "" {
			continue
		}
		model := name
		if rest, ok := strings.CutPrefix(name, "@"); ok {
			if _, below, ok := strings.Cut(rest, "/"); ok {
				model = below
			}
		}
		names = append(names, name, model)
		if slug != "" {
			names = append(names, "@"+slug+"/"+model)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
