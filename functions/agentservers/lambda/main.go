// Command lambda serves the routes of package agentservers as a function.
package main

import (
	"os"

	"gateway/functions/agentservers"
	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{agentservers.New(agentservers.Deps{
			CheckURL: c.Egress.CheckURL, PublicURL: os.Getenv(onaws.EnvPublicURL), Opener: &a2a.Opener{Sealer: c.Sealer, Transport: c.Transport, Secrets: console.Secrets(c)},
		})}
	}, onaws.Keys)
}
