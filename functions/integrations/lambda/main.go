// Command lambda serves the family integrations as a function.
package main

import (
	"gateway/functions/integrations"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{integrations.New(integrations.Deps{Ledger: c.Ledger, CheckURL: c.Egress.CheckURL})}
	}, onaws.Keys)
}
