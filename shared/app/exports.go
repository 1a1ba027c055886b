package app

import (
	"gateway/shared/blob"
	"gateway/shared/usage/export"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// ExportRuns are the runs of exports of logs.
func ExportRuns(c *Core) *export.Runs {
	return &export.Runs{Store: c.Store, Queue: c.Exports, Now: c.Now}
}

// ExportWorker does the steps of exports of logs; nil where the bucket does not write
// objects part by part.
func ExportWorker(c *Core, archive *segment.Archive, pace export.Pace) *export.Worker {
	bucket, ok := c.Bucket.(interface {
		blob.Bucket
		blob.Uploads
	})
	if !ok {
		return nil
	}
	return &export.Worker{Runs: ExportRuns(c), Reader: report.New(archive, c.Bucket), Bucket: bucket, Sealer: c.Sealer, Pace: pace}
}
