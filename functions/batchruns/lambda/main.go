// Command lambda is the Lambda function of the worker of gateway-managed batches: each message
// requests one step of one batch, or a check for abandoned batches.
package main

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/functions/batches"
	"gateway/functions/chat"
	"gateway/functions/embeddings"
	"gateway/functions/files"
	"gateway/functions/messages"
	"gateway/functions/passthrough"
	"gateway/functions/responses"
	"gateway/shared/app/onaws"
	"gateway/shared/app/plane"
	"gateway/shared/host"
	"gateway/shared/host/dataplane"
	"gateway/shared/relay"
	"gateway/shared/relay/batchrun"
	"gateway/shared/relay/tools"
)

func main() {
	host.LogJSON()
	r, err := open(context.Background())
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start(host.SQS(r.Handle))
}

func open(ctx context.Context) (*batchrun.Runner, error) {
	in, err := onaws.Open(ctx, onaws.Bucket, onaws.UsageQueue, onaws.AuditQueue, onaws.Keys, onaws.RunQueue)
	if err != nil {
		return nil, err
	}
	vectors, err := onaws.Vectors(ctx)
	if err != nil {
		return nil, err
	}
	r := plane.New(in.Core, dataplane.LogFallback(in.Sink), plane.Options{Jobs: plane.Jobs(), Translators: plane.RowTranslators(), Vectors: vectors})
	return batchrun.New(plane.Runner(in.Core, r, relay.NewMux(r, routes()), batchrun.DefaultTiming)), nil
}

// routes are those that rows of batches call, and by which the end of what providers
// make in the background is looked for.
func routes() []relay.Route {
	return tools.Loop(slices.Concat(chat.Routes(), messages.Routes(), responses.Routes(), embeddings.Routes(), files.Routes(), batches.Routes(), passthrough.Routes()))
}
