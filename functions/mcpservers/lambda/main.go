// Command lambda serves the routes of package mcpservers as a function.
package main

import (
	"gateway/functions/mcpservers"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{mcpservers.New(mcpservers.NewDeps(c, console.Secrets(c)))}
	}, onaws.Keys)
}
