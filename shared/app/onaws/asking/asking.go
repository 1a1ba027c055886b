// Package asking makes the reader of usage on AWS: what outgrows it is asked of Athena.
// It is apart from package onaws, which every function links.
package asking

import (
	"context"
	"log/slog"
	"os"
	"strconv"

	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/store"
	"gateway/shared/usage/athena"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// Variables that name the table of the files; none: all is read here.
const (
	EnvWorkgroup = "GATEWAY_ATHENA_WORKGROUP"
	EnvDatabase  = "GATEWAY_ATHENA_DATABASE"
	EnvTable     = "GATEWAY_ATHENA_TABLE"
	EnvHourly    = "GATEWAY_ATHENA_HOURLY_GB" // that questions for one organisation may read in an hour; none, 0: no bound
)

// Reader reads the archive.
func Reader(c *app.Core, archive *segment.Archive) *report.Reader {
	r := report.New(archive, c.Bucket)
	o := athena.Options{Workgroup: os.Getenv(EnvWorkgroup), Database: os.Getenv(EnvDatabase), Table: os.Getenv(EnvTable)}
	if o.Workgroup == "" || o.Database == "" || o.Table == "" {
		return r
	}
	if gb, err := strconv.ParseInt(os.Getenv(EnvHourly), 10, 64); err == nil && gb > 0 {
		o.Spent, o.Hourly = c.Store.Table(store.Usage), min(gb, 1e9)*1e9
	}
	cfg, err := onaws.Config(context.Background())
	if err != nil {
		slog.Error("Athena is not asked", "error", err.Error())
		return r
	}
	return r.WithFar(athena.New(cfg, o), report.FarRecords)
}
