// Package realtime is the family of realtime sessions over WebSockets. It has no
// function: a session lasts longer than one may run.
package realtime

import (
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/relay/socket"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{{
		Method: "GET", Path: "/realtime", Endpoint: "realtime", Shape: relay.Socket, Scope: "completions.write",
		Operation: provider.Realtime, Free: true, Through: true, Sockets: socket.Maker{},
	}}
}
