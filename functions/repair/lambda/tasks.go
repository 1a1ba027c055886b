package main

import (
	"context"
	"log/slog"

	"gateway/functions/expiry"
	"gateway/shared/app/onaws"
	"gateway/shared/host"
	"gateway/shared/usage/segment"
)

// tasks are the jobs by the names that schedules send. Each may run twice at a
// time.
func tasks(core *onaws.Installation) map[string]host.Task {
	archive := segment.New(core.Store, core.Bucket, segment.Options{Retention: core.Retention})
	keys := &expiry.Worker{Resources: core.Resources, Sealer: core.Sealer}
	return map[string]host.Task{
		"budgets": func(ctx context.Context) error {
			done, err := core.Ledger.RepairAll(ctx)
			slog.Info("budgets repaired", "heads", done.Heads, "settled", done.Settled)
			return err
		},
		"outbox": func(ctx context.Context) error {
			n, err := core.Sender.Sweep(ctx)
			if n > 0 {
				slog.Warn("audit records were left in the outbox", "sent", n)
			}
			return err
		},
		"keys":    keys.Run,
		"compact": archive.Compact,
		"retain":  archive.Retain,
		"vectors": onaws.SweepVectors,
	}
}

// questions are the jobs that are started by hand.
func questions(core *onaws.Installation) map[string]host.Question {
	return map[string]host.Question{
		"setup": func(ctx context.Context) (any, error) { return core.Setup(ctx) },
	}
}
