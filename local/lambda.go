package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gateway/local/onlambda"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/egress"
	"gateway/shared/host"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/queue"
	"gateway/shared/queue/sqs"
	"gateway/shared/relay/managed"
)

// openLambda serves through the real function binaries: this process is only the
// edge, the API and the platform around them. The function that the printed
// example calls is built first, the others when they are first needed.
func openLambda(ctx context.Context, o options) (_ *gateway, err error) {
	g := &gateway{options: o, stores: &stores{close: func() error { return nil }}}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if err = prepareEndpoint(ctx); err != nil {
		return nil, err
	}
	in, err := onaws.Open(ctx, onaws.Bucket, onaws.AuditQueue, onaws.UsageQueue, onaws.Keys)
	if err != nil {
		return nil, err
	}
	g.core = in.Core
	if err = g.startMock(); err != nil {
		return nil, err
	}
	if err = g.begin(ctx); err != nil {
		return nil, err
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	dir := o.functions
	if dir == "" {
		dir = filepath.Join(o.data, "functions")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	b := &builder{root: root, dir: dir, log: os.Stderr}
	secret := rand.Text()
	env := functionEnv(secret, g.mockHost())
	c := &container{builder: b, data: o.data, env: env}
	shim := onlambda.New(onlambda.Options{Dir: dir, Env: env, Log: os.Stderr, Secret: secret, Container: c.start, Build: b.build})
	g.stores.close = func() error { return errors.Join(closeShim(shim), c.stop()) }
	if err = shim.Prepare(ctx, "chat"); err != nil {
		return nil, err
	}
	if g.server, err = host.Listen(o.addr, shim, o.serve); err != nil {
		return nil, err
	}
	return g, g.runWorkers(ctx, shim)
}

// runWorkers feeds the workers' functions as event sources and schedules do.
func (g *gateway) runWorkers(ctx context.Context, shim *onlambda.Shim) error {
	cfg, err := onaws.Config(ctx)
	if err != nil {
		return err
	}
	poll := func(function, env string) worker {
		var q queue.Queue = sqs.New(cfg, os.Getenv(env))
		return func(ctx context.Context) error { return shim.Poll(ctx, q, function) }
	}
	schedule := func(every time.Duration, task string) worker {
		return func(ctx context.Context) error { return shim.Schedule(ctx, every, "repair", task) }
	}
	g.workers = []worker{
		poll("usage", onaws.EnvUsageQueue), poll("audit", onaws.EnvAuditQueue), poll("batchruns", onaws.EnvRunQueue),
		g.every(time.Minute, "batch sweep", func(ctx context.Context) error { return g.core.Runs.Send(ctx, managed.SweepMessage()) }),
		schedule(time.Minute, "outbox"), schedule(time.Minute, "keys"), schedule(time.Minute, "compact"), schedule(time.Hour, "budgets"),
	}
	return nil
}

// closeTime is how long events under way may take when the process stops.
const closeTime = 30 * time.Second

func closeShim(s *onlambda.Shim) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return s.Close(ctx)
}

// functionEnv is what the functions see: where AWS is, the installation, and
// what may be called besides public addresses, as egressPolicy has it.
func functionEnv(secret, mock string) []string {
	env := append(runtimeapi.HostEnv(), onaws.EnvOriginSecrets+"="+secret)
	for _, name := range []string{
		onaws.EnvTablePrefix, onaws.EnvBucket, onaws.EnvAuditQueue, onaws.EnvUsageQueue, onaws.EnvRunQueue, onaws.EnvKey, onaws.EnvFormerKeys, onaws.EnvBlockInline, app.EnvHTTP, host.EnvHeaderAliases,
		onaws.EnvMailFrom, onaws.EnvMailIdentity, onaws.EnvPublicURL,
	} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	allow, set := os.LookupEnv(onaws.EnvEgress)
	if !set {
		allow = defaultEgress
	}
	trusted, given := os.LookupEnv(onaws.EnvTrustedHosts)
	if !given && !set {
		trusted = strings.Join(egress.DefaultTrusted(false), ",")
	}
	trusted = strings.Trim(trusted+","+mock, ",")
	return append(env, onaws.EnvEgress+"="+allow, onaws.EnvTrustedHosts+"="+trusted)
}

// moduleRoot finds the source tree that the functions are built from.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || mod == "" || mod == os.DevNull {
		return "", errors.New("-store aws -lambda builds the functions: start it within the source tree, with the go command at hand")
	}
	return filepath.Dir(mod), nil
}
