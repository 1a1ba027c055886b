// Command lambda serves the family modelpricing as a function.
package main

import (
	"gateway/functions/modelpricing"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family { return []admin.Family{modelpricing.New(c.Book())} })
}
