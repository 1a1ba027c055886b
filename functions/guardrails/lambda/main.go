// Command lambda serves the routes of package guardrails as a function.
package main

import (
	"gateway/functions/guardrails"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{guardrails.New(guardrails.Deps{CheckURL: c.Egress.CheckURL})}
	})
}
