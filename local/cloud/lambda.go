package cloud

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gateway/local/onlambda"
	"gateway/local/source"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/alias"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/queue"
	"gateway/shared/queue/sqs"
)

// Functions serves with the real function binaries; only the edge, the API and the platform
// around them are replaced. The function that the printed example calls is built first,
// each other function when it is first needed. dir is the folder of the binaries, data the
// folder of the container's journal. allow and trusted are what may be called besides
// public addresses, and by plain HTTP. Close stops the functions; call it after an error
// too.
func (Side) Functions(ctx context.Context, core *app.Core, dir, data, allow, trusted string) (serve http.Handler, workers []func(context.Context) error, close func() error, err error) {
	close = func() error { return nil }
	root, err := source.Root()
	if err != nil {
		return nil, nil, close, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, close, err
	}
	b := &builder{root: root, dir: dir, log: os.Stderr}
	secret := rand.Text()
	env := functionEnv(secret, allow, trusted)
	c := &container{builder: b, data: data, env: env}
	shim := onlambda.New(onlambda.Options{Dir: dir, Env: env, Log: os.Stderr, Secret: secret, Container: c.start, Build: b.build})
	close = func() error { return errors.Join(closeShim(shim), c.stop()) }
	if err = shim.Prepare(ctx, "chat"); err != nil {
		return nil, nil, close, err
	}
	workers, err = workersOf(ctx, shim, core)
	return shim, workers, close, err
}

// workersOf give events to the functions of the workers, as event sources and schedules do.
func workersOf(ctx context.Context, shim *onlambda.Shim, core *app.Core) ([]func(context.Context) error, error) {
	cfg, err := onaws.Config(ctx)
	if err != nil {
		return nil, err
	}
	poll := func(function, env string) func(context.Context) error {
		var q queue.Queue = sqs.New(cfg, os.Getenv(env))
		return func(ctx context.Context) error { return shim.Poll(ctx, q, function) }
	}
	schedule := func(every time.Duration, task string) func(context.Context) error {
		return func(ctx context.Context) error { return shim.Schedule(ctx, every, "repair", task) }
	}
	return []func(context.Context) error{
		poll("usage", onaws.EnvUsageQueue), poll("audit", onaws.EnvAuditQueue), poll("batchruns", onaws.EnvRunQueue), poll("exports", onaws.EnvExportQueue),
		schedule(time.Minute, "outbox"), schedule(time.Minute, "keys"), schedule(time.Minute, "compact"), schedule(time.Hour, "budgets"),
	}, nil
}

// closeTime is how long events under way may take when the process stops.
const closeTime = 30 * time.Second

func closeShim(s *onlambda.Shim) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return s.Close(ctx)
}

// functionEnv are the functions' variables: where AWS is, the names of the installation,
// and what may be called.
func functionEnv(secret, allow, trusted string) []string {
	env := append(runtimeapi.HostEnv(), onaws.EnvOriginSecrets+"="+secret)
	for _, name := range []string{
		onaws.EnvTablePrefix, onaws.EnvBucket, onaws.EnvAuditQueue, onaws.EnvUsageQueue, onaws.EnvRunQueue, onaws.EnvExportQueue, onaws.EnvKey, onaws.EnvFormerKeys, onaws.EnvBlockInline, app.EnvHTTP, alias.Env,
		onaws.EnvMailFrom, onaws.EnvMailIdentity, onaws.EnvPublicURL,
	} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return append(env, onaws.EnvEgress+"="+allow, onaws.EnvTrustedHosts+"="+trusted)
}
