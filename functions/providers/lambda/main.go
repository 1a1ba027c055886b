// Command lambda serves the family providers as a function.
package main

import (
	"gateway/functions/providers"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{providers.New(providers.NewDeps(c))}
	}, onaws.Keys)
}
