//go:build !core

package assembly

import (
	"gateway/functions/dryrun"
	"gateway/shared/relay"
)

// Dry runs of the routes of all parts: this file is the last one.
func init() {
	parts = append(parts, part{routes: func(list []relay.Route) []relay.Route { return append(list, dryrun.Routes(list)...) }})
}
