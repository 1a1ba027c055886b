// Package logexport makes exports of the logs of an installation. It is not part of package
// app, which every function links, because the code that reads segments weighs 4 MB.
package logexport

import (
	"gateway/shared/app"
	"gateway/shared/blob"
	"gateway/shared/usage/export"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// NewRuns are the runs of exports of logs.
func NewRuns(c *app.Core) *export.Runs {
	return &export.Runs{Store: c.Store, Queue: c.Exports, Now: c.Now, WorkspaceRetention: c.RetentionDays, Longest: c.Retention.Bodies}
}

// Worker does the steps of exports of logs; nil where the bucket does not write
// objects part by part.
func Worker(c *app.Core, archive *segment.Archive, pace export.StepLimits) *export.Worker {
	bucket, ok := c.Bucket.(interface {
		blob.Bucket
		blob.Uploads
	})
	if !ok {
		return nil
	}
	return &export.Worker{Runs: NewRuns(c), Reader: report.New(archive, c.Bucket), Bucket: bucket, Sealer: c.Sealer, Limits: pace}
}
