// Command lambda serves the family feedback as a function.
package main

import (
	"gateway/functions/feedback"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
	store "gateway/shared/usage/feedback"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{feedback.New(store.New(c.Store, c.Now, c.Retention.Records, c.RetentionDays))}
	})
}
