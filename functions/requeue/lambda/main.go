// Command lambda is the worker that queues lost usage events again, as a
// function.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/functions/requeue"
	"gateway/shared/app/onaws"
	"gateway/shared/host"
)

func main() {
	host.LogJSON()
	core, err := onaws.Open(context.Background(), onaws.UsageQueue)
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start((&requeue.Worker{Queue: core.Usage}).Handle)
}
