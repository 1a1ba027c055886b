// Command lambda serves the family secretreferences as a function.
package main

import (
	"gateway/functions/secretreferences"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{secretreferences.New(secretreferences.Deps{CheckURL: c.Egress.CheckURL, Transport: c.Transport, Now: c.Now})}
	}, onaws.Keys)
}
