// Command lambda serves the family scim as a function.
package main

import (
	"gateway/functions/scim"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family { return []admin.Family{scim.New(scim.NewDeps(c))} })
}
