package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// runLambda serves through the real function binaries: this process is only the
// edge, the API and the platform around them.
func runLambda(ctx context.Context, o options, out io.Writer) error {
	g, err := openLambda(ctx, o)
	if err != nil {
		return err
	}
	return g.serve(ctx, out)
}

// openLambda builds the functions and puts them behind one address.
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
	functions, err := filepath.Abs(filepath.Join(o.data, "functions"))
	if err != nil {
		return nil, err
	}
	if err = onlambda.Build(ctx, root, functions); err != nil {
		return nil, err
	}
	secret := rand.Text()
	env := functionEnv(secret, g.mockHost())
	container, err := startContainer(ctx, functions, o.data, env)
	if err != nil {
		return nil, err
	}
	shim := onlambda.New(onlambda.Options{Dir: functions, Env: env, Log: os.Stderr, Secret: secret, Container: container.addr})
	g.stores.close = func() error { return errors.Join(closeShim(shim), container.stop()) }
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
		return "", errors.New("-lambda builds the functions: start it within the source tree, with the go command at hand")
	}
	return filepath.Dir(mod), nil
}

// containerProcess is the container's binary on this machine.
type containerProcess struct {
	addr string
	cmd  *exec.Cmd
	done chan error
}

// startContainer starts the container and waits until it is ready.
func startContainer(ctx context.Context, functions, data string, env []string) (*containerProcess, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &containerProcess{addr: ln.Addr().String(), done: make(chan error, 1)}
	if err := ln.Close(); err != nil {
		return nil, err
	}
	c.cmd = exec.Command(filepath.Join(functions, "container", "gateway"))
	c.cmd.Env = append(env, "GATEWAY_ADDR="+c.addr, "GATEWAY_JOURNAL="+filepath.Join(data, "container-journal"))
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("container: %w", err)
	}
	go func() { c.done <- c.cmd.Wait() }()
	for {
		res, err := http.Get("http://" + c.addr + "/healthz")
		if err == nil {
			res.Body.Close()
			return c, nil
		}
		select {
		case err := <-c.done:
			return nil, fmt.Errorf("container: it ended: %w", errors.Join(err, io.ErrUnexpectedEOF))
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), c.stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop lets the container finish its answers and send its events.
func (c *containerProcess) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case err := <-c.done:
		return err
	case <-time.After(closeTime + 10*time.Second):
		return errors.Join(errors.New("container: it does not stop"), c.cmd.Process.Kill())
	}
}
