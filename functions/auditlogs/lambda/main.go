// Command lambda serves the family auditlogs as a function.
package main

import (
	"gateway/functions/auditlogs"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{auditlogs.New(audit.NewReader(c.Store, c.Now))}
	})
}
