package provider

import (
	"net/url"
	"strings"
)

// PathModel is the model that the path of a request to be passed through names,
// for providers that take it there and not in the body; "" when it names none.
// escapedPath is as PassthroughURL takes it.
func (p *Provider) PathModel(escapedPath string) string {
	if p.Dialect != Converse {
		return ""
	}
	rest, ok := strings.CutPrefix(strings.TrimLeft(escapedPath, "/"), "model/")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(id)
	if err != nil {
		return id // no model has such a name
	}
	return name
}
