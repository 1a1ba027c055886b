package relay

import (
	"net/http"
	"slices"

	"gateway/shared/relay/routes"
)

// Mux serves the routes of a table.
type Mux struct {
	*routes.Table
	relay *Relay
}

// NewMux serves routes with r. Two routes with the same method and path are a
// mistake of the program.
func NewMux(r *Relay, all []routes.Route) *Mux {
	for i := range all {
		if of, ok := all[i].Protocol().(routes.Credentials); ok && r != nil {
			r.Auth.Tokens = of.Credentials(r.Loader, r.Now, r.Auth.Tokens)
			break
		}
	}
	if r != nil && r.Sessions == nil {
		all = slices.Clone(all)
		for i := range all {
			all[i] = all[i].WithoutSockets()
		}
	}
	return &Mux{routes.NewTable(all), r}
}

// ServeHTTP implements http.Handler.
func (m *Mux) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	req = m.Spelled(req)
	rt, id := m.Match(req.Method, req.URL.EscapedPath())
	if rt == nil {
		m.Refuse(w, req)
		return
	}
	if rt.Google != nil && routes.GoogleClient(req.Header) {
		rt = rt.Google
	}
	m.relay.serve(w, req, rt, id)
}
