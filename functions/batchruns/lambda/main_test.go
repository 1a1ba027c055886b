package main

import (
	"testing"

	"gateway/shared/relay"
	"gateway/shared/relay/batch"
)

// The provider requests of this function have routes.
func TestRoutesOfLooks(t *testing.T) {
	t.Parallel()
	mux := relay.NewMux(nil, routes())
	for _, a := range []batch.PolledResponse{{ID: "resp_1"}, {ID: "v1_1", Path: "/proxy/v1beta/interactions/v1_1"}} {
		if mux.Find("GET", relay.BasePath+a.ReadAt()) == nil {
			t.Errorf("no route for %s", a.ReadAt())
		}
	}
}
