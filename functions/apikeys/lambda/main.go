// Command lambda serves the family apikeys as a function.
package main

import (
	"gateway/functions/apikeys"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{apikeys.New(c.Ledger)}
	}, onaws.Keys)
}
