// Command lambda serves the family analytics as a function.
package main

import (
	"gateway/functions/analytics"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/app/onaws/usagereader"
	"gateway/shared/host/administration"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/segment"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		archive := segment.New(c.Store, c.Bucket, segment.Options{Retention: c.Retention, WorkspaceRetention: c.RetentionDays})
		return []admin.Family{analytics.New(usagereader.Reader(c, archive), feedback.New(c.Store, c.Now, c.Retention.Records, c.RetentionDays))}
	}, onaws.Bucket)
}
