package body

import (
	"net/http"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/routes"
)

// TestSocketsThatAreNotServed: clients of responses continue by requests at 426 and dial again
// after other statuses.
func TestSocketsThatAreNotServed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler routes.Handler
		want    int
	}{
		"a session":  {new(routes.Realtime), http.StatusNotImplemented},
		"a dialogue": {&routes.Dialogue{Path: "/responses"}, http.StatusUpgradeRequired},
	} {
		var b Body
		b.Req = new(admission.Request)
		b.Req.Route = &routes.Route{BodyMode: routes.Socket, Handler: c.handler}
		if f := fault.From(takeSocket(&b)); f.Status() != c.want {
			t.Errorf("%s: %d, want %d", name, f.Status(), c.want)
		}
	}
}
