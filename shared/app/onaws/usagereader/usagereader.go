// Package usagereader makes the reader of usage on AWS. Questions that are too large for it go
// to Athena. It is not part of package onaws, which every function links.
package usagereader

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

// Variables that name Athena's table of the files. Without them everything is read by the
// process itself.
const (
	EnvWorkgroup = "GATEWAY_ATHENA_WORKGROUP"
	EnvDatabase  = "GATEWAY_ATHENA_DATABASE"
	EnvTable     = "GATEWAY_ATHENA_TABLE"
	EnvHourly    = "GATEWAY_ATHENA_HOURLY_GB" // gigabytes that the questions of one organization may read in an hour; none, 0: no bound
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
		slog.Error("Athena is not used", "error", err.Error())
		return r
	}
	return r.WithSQLEngine(athena.New(cfg, o), report.SQLEngineRecords)
}
