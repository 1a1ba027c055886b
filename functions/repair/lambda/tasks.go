// Command lambda is the worker of scheduled tasks: reservations of requests that died, audit
// records left in the outbox, expired keys and invitations, notices and webhook deliveries, and
// merging of small segments. On request it also initializes an empty installation.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/functions/expiry"
	"gateway/functions/originsecret"
	"gateway/shared/app/logexport"
	"gateway/shared/app/notices"
	"gateway/shared/app/onaws"
	"gateway/shared/app/onaws/mails"
	"gateway/shared/host"
	"gateway/shared/usage/export"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/segment"
)

// tasks are the jobs by the names that schedules send. Each may run twice at a
// time.
func tasks(core *onaws.Installation) map[string]host.Task {
	archive := segment.New(core.Store, core.Bucket, segment.Options{Inline: segment.CheapestInline, Files: true, MinMerge: segment.CheapestMinMerge, Retention: core.Retention, WorkspaceRetention: core.RetentionDays})
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
		"notices": notices.Worker(core.Core).Run,
		"compact": func(ctx context.Context) error {
			if core.Prices == nil {
				return archive.Compact(ctx)
			}
			return errors.Join(archive.Compact(ctx), core.Prices.Refresh(ctx))
		},
		"retain": func(ctx context.Context) error {
			// The archive comes last: it may take all the time that there is.
			rated := feedback.New(core.Store, core.Now, core.Retention.Records, core.RetentionDays)
			errs := []error{rated.Retain(ctx, feedback.Places{Organizations: archive.Organizations, Workspaces: core.Workspaces})}
			if w := logexport.Worker(core.Core, archive, export.Standard); w != nil {
				errs = append(errs, w.Sweep(ctx))
			}
			return errors.Join(append(errs, archive.Retain(ctx))...)
		},
		"vectors": onaws.SweepVectors,
		"origin":  rotation(core, (*originsecret.Rotation).Run),
		// For a secret that may have leaked: aws lambda invoke --payload
		// '{"task":"origin-now"}'
		"origin-now": rotation(core, (*originsecret.Rotation).Begin),
	}
}

// rotation is a step of replacing the edge's secret; none where there is no edge.
func rotation(core *onaws.Installation, step func(*originsecret.Rotation, context.Context) error) host.Task {
	return func(ctx context.Context) error {
		cfg, err := onaws.Config(ctx)
		if err != nil {
			return err
		}
		cloud := originsecret.FromEnvironment(cfg)
		if cloud == nil {
			return nil
		}
		return step(&originsecret.Rotation{Vault: cloud, Edge: cloud, Store: core.Store}, ctx)
	}
}

// questions are the jobs that are started by hand.
func questions(core *onaws.Installation) map[string]host.Query {
	return map[string]host.Query{
		"setup": func(ctx context.Context) (any, error) { return core.Setup(ctx) },
	}
}

func main() {
	host.LogJSON()
	core, err := onaws.Open(context.Background(), onaws.Bucket, onaws.UsageQueue, onaws.AuditQueue, onaws.Keys)
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	if core.Mailer, err = mails.FromEnvironment(context.Background()); err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	run := host.Tasks(tasks(core), questions(core))
	lambda.Start(func(ctx context.Context, event json.RawMessage) (any, error) {
		out, err := run(ctx, event)
		return out, onaws.Advise(err)
	})
}
