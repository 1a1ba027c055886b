// Command lambda serves the routes of package auth as a function.
package main

import (
	"gateway/functions/auth"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family { return []admin.Family{auth.New(auth.NewDeps(c))} }, onaws.Keys)
}
