// Package dryrun is the family that predicts what a request would do: which targets would be
// called with what, at what price, within which limits. Nothing is sent.
package dryrun

import (
	"slices"

	"gateway/shared/relay"
)

// Routes are the family's routes; of are the data plane's, which can be rehearsed.
func Routes(of []relay.Route) []relay.Route {
	of = slices.DeleteFunc(slices.Clone(of), func(rt relay.Route) bool { return rt.Protocol() != nil }) // nothing of them is routed
	return []relay.Route{{
		Method: "POST", Path: "/configs/dry-run", Endpoint: "configDryRun", BodyMode: relay.Unified,
		Scope: "configs.read", OrScopes: []string{"completions.write"},
		NoModel: true, Free: true, NoOutput: true, Handler: &relay.DryRun{Routes: of},
		Check: func(body []byte) error { _, err := relay.ReadDryRun(body); return err },
	}}
}
