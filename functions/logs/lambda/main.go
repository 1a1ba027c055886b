// Command lambda serves the family logs as a function.
package main

import (
	"gateway/functions/logs"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/exporting"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		archive := segment.New(c.Store, c.Bucket, segment.Options{Retention: c.Retention})
		return []admin.Family{logs.New(logs.Deps{
			Reader: report.New(archive, c.Bucket), Sealer: c.Sealer, Rated: feedback.New(c.Store, c.Now, c.Retention.Records),
			Exports: exporting.Runs(c), Bucket: c.Bucket,
		})}
	}, onaws.Bucket, onaws.Keys, onaws.ExportQueue)
}
