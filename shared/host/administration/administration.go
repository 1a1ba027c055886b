// Package administration is the main function of administration functions on
// Lambda.
package administration

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/app/onaws"
	"gateway/shared/host"
	"gateway/shared/host/alias"
	"gateway/shared/host/meter"
	"gateway/shared/host/originauth"
	"gateway/shared/mcp/cors"
	"gateway/shared/seal"
)

// Main serves families until the platform ends the process. parts are the dependencies of
// the families besides the tables and the queues: a function that neither seals nor opens
// data has no key.
func Main(families func(*app.Core) []admin.Family, parts ...onaws.Part) {
	host.LogJSON()
	b, err := open(context.Background(), families, parts)
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start(b.Invoke)
}

func open(ctx context.Context, families func(*app.Core) []admin.Family, parts []onaws.Part) (*host.Buffered, error) {
	m := meter.Process(onaws.Name())
	in, err := onaws.Open(ctx, append([]onaws.Part{onaws.AuditQueue, onaws.UsageQueue}, parts...)...)
	if err != nil {
		return nil, err
	}
	if in.Sealer == nil {
		in.Sealer = seal.Absent{}
	}
	secrets, err := onaws.OriginSecrets()
	if err != nil {
		return nil, err
	}
	aliases, err := alias.FromEnvironment()
	if err != nil {
		return nil, err
	}
	pages, err := cors.FromEnvironment(cors.Public(os.Getenv(cors.EnvPublic)))
	if err != nil {
		return nil, err
	}
	h, err := console.New(in.Core, in.Sender, families(in.Core)...)
	if err != nil {
		return nil, err
	}
	return host.NewBuffered(m.Handler(pages.Handler(aliases.Handler(h))), originauth.ForStore(secrets, in.Store).OnRejected(m.CountBypass)), nil
}
