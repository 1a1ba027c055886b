// Command lambda is the worker of scheduled tasks: reservations of requests that died, audit
// records left in the outbox, expired keys and invitations, notices and webhook deliveries, and
// merging of small segments. On request it also initializes an empty installation.
package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/shared/app/onaws"
	"gateway/shared/app/onaws/mails"
	"gateway/shared/host"
)

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
