// Command lambda serves the family policies as a function.
package main

import (
	"gateway/functions/policies"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family { return []admin.Family{policies.New(c.Ledger)} })
}
