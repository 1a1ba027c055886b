package inbound

import (
	"net/http"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/routes"
)

// TestSocketsThatAreNotServed: clients of responses go on by requests at 426 and dial again
// after other statuses.
func TestSocketsThatAreNotServed(t *testing.T) {
	t.Parallel()
	for turns, want := range map[string]int{"": http.StatusNotImplemented, "/responses": http.StatusUpgradeRequired} {
		var b Body
		b.Req = new(admitted.Request)
		b.Req.Route = &routes.Route{Shape: routes.Socket, Turns: turns}
		if f := fault.From(takeSocket(&b)); f.Status() != want {
			t.Errorf("turns %q: %d, want %d", turns, f.Status(), want)
		}
	}
}
