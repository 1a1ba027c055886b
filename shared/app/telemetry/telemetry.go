// Package telemetry makes the exporter of telemetry of an installation. It is not part of
// package app, which every function links.
package telemetry

import (
	"log/slog"
	"os"

	"gateway/shared/app"
	"gateway/shared/observe"
)

// Exporter sends telemetry to the destinations of an installation.
func Exporter(c *app.Core) *observe.Exporter {
	kept := observe.StoredContent{Bucket: c.Bucket, Sealer: c.Sealer}
	authors := &Authors{Loader: c.Loader, Now: c.Now}
	own, err := observe.FromEnvironment(os.Getenv)
	if err != nil {
		slog.Error("telemetry of the process is not exported", "error", err.Error())
	}
	return &observe.Exporter{
		Own: own, OwnVia: c.Trusting,
		Directory: &observe.Stored{Resources: c.Resources, Sealer: c.Sealer, MayRead: authors.ReadsAllBodies}, Bodies: kept.Bodies,
		Via: c.Transport, Now: c.Now, OptIn: os.Getenv(observe.OptIn),
	}
}
