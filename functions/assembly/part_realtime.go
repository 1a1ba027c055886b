//go:build !core

package assembly

import (
	"gateway/functions/realtime"
	"gateway/shared/app/plane"
	"gateway/shared/relay"
)

// Realtime and Live sessions, and responses over WebSockets.
func init() {
	parts = append(parts, part{
		routes: func(list []relay.Route) []relay.Route { return append(list, realtime.Routes()...) },
		plane:  func(o *plane.Options) { o.Sessions = relay.NewSessions() },
	})
}
