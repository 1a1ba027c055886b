// Command lambda serves the family workspaces as a function.
package main

import (
	"gateway/functions/workspaces"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{workspaces.New(workspaces.Deps{Ledger: c.Ledger})}
	})
}
