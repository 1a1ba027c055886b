// Command lambda serves the family webhooks as a function.
package main

import (
	"gateway/functions/webhooks"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{webhooks.New(webhooks.Deps{CheckURL: c.Egress.CheckURL, Store: c.Store, Now: c.Now})}
	}, onaws.Keys)
}
