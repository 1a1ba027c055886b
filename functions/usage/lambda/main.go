// Command lambda is the worker of usage events as a function.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/functions/usage"
	"gateway/shared/app/onaws"
	"gateway/shared/app/telemetry"
	"gateway/shared/host"
	events "gateway/shared/usage"
	"gateway/shared/usage/lastused"
	"gateway/shared/usage/segment"
)

func main() {
	host.LogJSON()
	core, err := onaws.Open(context.Background(), onaws.Bucket, onaws.UsageQueue, onaws.AuditQueue, onaws.Keys)
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	archive := segment.New(core.Store, core.Bucket, segment.Options{Inline: segment.CheapestInline, OnRejected: func(id string, err error) {
		slog.Error("usage event cannot be stored", "event", id, "error", err.Error())
	}})
	used, exporter := lastused.NewRecorder(core.Store), telemetry.Exporter(core.Core)
	w := usage.Worker{Ingester: archive, Settler: core.Ledger, OnStored: func(ctx context.Context, records []events.Record) {
		used.Record(ctx, records)
		exporter.Export(ctx, records)
	}}
	lambda.Start(host.SQS(w.Handle))
}
