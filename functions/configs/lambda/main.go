// Command lambda serves the family configs as a function.
package main

import (
	"gateway/functions/configs"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{configs.New(configs.Deps{CheckURL: c.Egress.CheckURL})}
	}, onaws.Keys)
}
