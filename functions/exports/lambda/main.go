// Command lambda is the Lambda function of the worker of log exports: each message requests one
// step of one export.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/shared/app/logexport"
	"gateway/shared/app/onaws"
	"gateway/shared/host"
	"gateway/shared/usage/export"
	"gateway/shared/usage/segment"
)

func main() {
	host.LogJSON()
	in, err := onaws.Open(context.Background(), onaws.Bucket, onaws.Keys, onaws.ExportQueue)
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	archive := segment.New(in.Store, in.Core.Bucket, segment.Options{Retention: in.Retention, WorkspaceRetention: in.Core.RetentionDays})
	lambda.Start(host.SQS(logexport.Worker(in.Core, archive, export.Standard).Handle))
}
