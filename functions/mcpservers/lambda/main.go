// Command lambda serves the family mcpservers as a function.
package main

import (
	"os"

	"gateway/functions/mcpservers"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
	"gateway/shared/mcp"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{mcpservers.New(mcpservers.Deps{
			CheckURL: c.Egress.CheckURL, PublicURL: os.Getenv(onaws.EnvPublicURL), Opener: &mcp.Opener{Sealer: c.Sealer, Via: c.Transport, Hosts: c.Trusting, Now: c.Now, Secrets: console.Secrets(c)},
		})}
	}, onaws.Keys)
}
