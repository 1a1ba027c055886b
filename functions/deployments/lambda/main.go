// Command lambda serves the family deployments as a function.
package main

import (
	"gateway/functions/deployments"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{deployments.New(deployments.Deps{CheckURL: c.Egress.CheckURL, Transport: c.Transport})}
	})
}
