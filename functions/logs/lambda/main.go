// Command lambda serves the family logs as a function.
package main

import (
	"time"

	"gateway/functions/logs"
	"gateway/functions/logs/ingest"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/logexport"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// tailTime is how long a tail waits for logs; API Gateway times out after 29 s.
const tailTime = 20 * time.Second

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		archive := segment.New(c.Store, c.Bucket, segment.Options{Retention: c.Retention, WorkspaceRetention: c.RetentionDays})
		return []admin.Family{logs.New(logs.Deps{
			Reader: report.New(archive, c.Bucket), Sealer: c.Sealer, Rated: feedback.New(c.Store, c.Now, c.Retention.Records, c.RetentionDays),
			Exports: logexport.NewRuns(c), Bucket: c.Bucket,
			Tail: logs.TailOptions{MaxBuffered: tailTime}, Store: c.Store, Ingest: &ingest.Maker{Sink: c.Events(), Sealer: c.Sealer, Now: c.Now, Prices: c.Book()}, Prices: c.Book(),
		})}
	}, onaws.Bucket, onaws.Keys, onaws.ExportQueue)
}
