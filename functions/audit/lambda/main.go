// Command lambda is the worker of audit records as a function.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/shared/app/onaws"
	"gateway/shared/audit"
	"gateway/shared/host"
)

func main() {
	host.LogJSON()
	core, err := onaws.Open(context.Background())
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start(host.SQS(audit.NewWorker(core.Store).Handle))
}
