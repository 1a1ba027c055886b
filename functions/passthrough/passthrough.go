// Package passthrough is the family of all provider paths that no other family
// takes: path, query, body and answer are forwarded byte for byte.
package passthrough

import "gateway/shared/relay"

// Routes are the family's routes: every path below the base URL, and below
// /proxy for paths that the gateway's own routes shadow.
func Routes() []relay.Route {
	return []relay.Route{{
		Methods: []string{"POST", "GET", "PUT", "DELETE"}, Path: relay.AnyPath,
		Endpoint: "proxy", Shape: relay.Raw, Scope: "completions.write",
	}}
}
