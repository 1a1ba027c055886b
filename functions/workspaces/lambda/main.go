// Command lambda serves the family workspaces as a function.
package main

import (
	"slices"

	"gateway/functions/workspaces"
	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
	"gateway/shared/mcp"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{workspaces.New(workspaces.Deps{Ledger: c.Ledger, Dependents: slices.Concat(mcp.Dependents, a2a.Dependents)})}
	})
}
