package assembly

import (
	"slices"

	"gateway/functions/docs"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/plane"
	"gateway/shared/relay"
	"gateway/shared/resource"
)

// A part is an optional part of the product. Its file registers it, and only that file imports
// its packages: with the build tag core, the file and so the packages are omitted. There is one
// tag for all, because parts use each other: the OAuth server of sign-in serves clients of MCP.
// Nil fields add nothing.
type part struct {
	// families and routes return the list with those of the part.
	families func(*app.Core, []admin.Family) []admin.Family
	routes   func([]relay.Route) []relay.Route
	// plane sets what the part serves routes with.
	plane func(*plane.Options)
	// dependents are the part's kinds of resources of workspaces.
	dependents []resource.Dependent
	// tools serves the document as tools.
	tools func(*app.Core) docs.Tools
}

// parts are the linked parts, in the order of their names. Only init functions change it.
var parts []part

// before returns list with families before the one with a name.
func before(name string, list []admin.Family, families ...admin.Family) []admin.Family {
	return slices.Insert(list, slices.IndexFunc(list, func(f admin.Family) bool { return f.Name == name }), families...)
}

// Plane returns the options of the data plane with the linked parts.
func Plane(o plane.Options) plane.Options {
	for _, p := range parts {
		if p.plane != nil {
			p.plane(&o)
		}
	}
	return o
}
