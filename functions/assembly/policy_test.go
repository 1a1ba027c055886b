package assembly_test

import (
	"testing"

	"gateway/functions/assembly"
	"gateway/shared/relay"
)

// A mistake in the description of a route stops the process at its start.
func TestRoutesWithoutAPolicyStopTheStart(t *testing.T) {
	good := relay.Route{Method: "POST", Path: "/x", Endpoint: "x", BodyMode: relay.Unified, Scope: "completions.write"}
	unguarded := good
	unguarded.Scope = ""
	for name, routes := range map[string][]relay.Route{
		"no scope":         {unguarded},
		"the same twice":   {good, good},
		"all and one more": append(assembly.DataPlane(), assembly.DataPlane()[0]),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			relay.NewMux(nil, routes)
		}()
	}
	relay.NewMux(nil, append(assembly.DataPlane(), good))
}
