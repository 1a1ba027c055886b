// Package cloud implements `-store aws` of the local gateway: the stores, on AWS or at
// AWS_ENDPOINT_URL; AWS emulators if no variable names an endpoint; and the real function
// binaries. The AWS SDK is a fifth of a program, and half of the memory of an idle gateway. The
// default local gateway, with stores in files, is therefore built without it.
package cloud

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
	"sync"
	"syscall"
	"time"

	"gateway/local/onlambda"
	"gateway/local/source"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/app/onaws/profiles"
	"gateway/shared/host/alias"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/queue"
	"gateway/shared/queue/sqs"
	"gateway/shared/store/dynamo/emulator"
	"gateway/shared/testkit/awsemulator"
)

// Backends provides the AWS parts of the local gateway.
type Backends struct{}

// Configure makes the process find its credentials as AWS's command line does.
func (Backends) Configure() { onaws.Use(profiles.Load) }

// Advise puts advice in front of an error of AWS.
func (Backends) Advise(err error) error { return onaws.Advise(err) }

// Backends returns the backends of a gateway that writes usage events to a journal, like the
// container.
func (Backends) Backends(ctx context.Context) (app.Backends, error) {
	if err := prepareEndpoint(ctx); err != nil {
		return app.Backends{}, err
	}
	return onaws.Backends(ctx, onaws.Bucket, onaws.AuditQueue, onaws.Keys)
}

// Core returns the core of a gateway that serves requests by functions.
func (Backends) Core(ctx context.Context) (*app.Core, error) {
	if err := prepareEndpoint(ctx); err != nil {
		return nil, err
	}
	in, err := onaws.Open(ctx, onaws.Bucket, onaws.AuditQueue, onaws.UsageQueue, onaws.Keys)
	if err != nil {
		return nil, err
	}
	return in.Core, nil
}

// StartEmulators starts AWS emulators unless the environment selects an AWS, by an endpoint or by the
// name of a resource. The emulators lose their data when the process ends, so this run's
// journals are in a temporary folder: StartEmulators returns it, or "" without emulators. end stops
// the emulators and deletes the folder.
func (Backends) StartEmulators(ctx context.Context, log io.Writer) (data string, end func() error, err error) {
	if elsewhere() || named() {
		return "", func() error { return nil }, nil
	}
	root, err := source.Root()
	if err != nil {
		return "", nil, err
	}
	s, err := awsemulator.Start(ctx, root)
	if errors.Is(err, emulator.ErrMissing) {
		return "", nil, fmt.Errorf("no AWS_ENDPOINT_URL is set, and the stand-ins of AWS cannot start: %w\n(or set AWS_ENDPOINT_URL to an AWS-compatible endpoint)", err)
	}
	if err != nil {
		return "", nil, err
	}
	// A profile of the user would take precedence over the access key of the emulators.
	for _, name := range []string{"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"} {
		err = errors.Join(err, os.Unsetenv(name))
	}
	err = errors.Join(err, awsemulator.Set(s.Endpoints(), s.Named(), awsemulator.Identity("local")))
	if err != nil {
		s.Close()
		return "", nil, err
	}
	if data, err = os.MkdirTemp("", "gateway-"); err != nil {
		s.Close()
		return "", nil, err
	}
	_, _ = fmt.Fprintf(log, "stand-ins of AWS, in memory: %s\n", s)
	return data, func() error {
		s.Close()
		return os.RemoveAll(data)
	}, nil
}

// named reports whether a variable names a resource of an installation.
func named() bool {
	for _, name := range []string{onaws.EnvTablePrefix, onaws.EnvBucket, onaws.EnvAuditQueue, onaws.EnvUsageQueue, onaws.EnvRunQueue, onaws.EnvExportQueue, onaws.EnvKey,
		"AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_KMS"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// Functions serves with the real function binaries; only the edge, the API and the platform
// around them are replaced. The function that the printed example calls is built first,
// each other function when it is first needed. dir is the folder of the binaries, data the
// folder of the container's journal. allow and trusted are what may be called besides
// public addresses, and by plain HTTP. Close stops the functions; call it after an error
// too.
func (Backends) Functions(ctx context.Context, core *app.Core, dir, data, allow, trusted string) (serve http.Handler, workers []func(context.Context) error, close func() error, err error) {
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
func workersOf(ctx context.Context, shim *onlambda.Platform, core *app.Core) ([]func(context.Context) error, error) {
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

func closeShim(s *onlambda.Platform) error {
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

// builder makes the functions' binaries, one at a time, and reports that.
type builder struct {
	root, dir string // folders of the source and of the binaries
	log       io.Writer
	mu        sync.Mutex
}

// build makes one binary, unless it is up to date.
func (b *builder) build(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	begun := time.Now()
	_, _ = fmt.Fprintf(b.log, "building the function %s ...\n", name)
	if err := onlambda.Build(ctx, b.root, b.dir, name); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.log, "built the function %s in %s\n", name, time.Since(begun).Round(10*time.Millisecond))
	return nil
}

// container is the container's binary on this machine.
type container struct {
	builder *builder
	data    string
	env     []string

	mu   sync.Mutex
	cmd  *exec.Cmd // nil until it is started
	done chan error
}

// start builds and starts the container. When the container is ready, start returns its
// address.
func (c *container) start(ctx context.Context) (addr string, err error) {
	if err := c.builder.build(ctx, "container"); err != nil {
		return "", err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr = ln.Addr().String()
	if err := ln.Close(); err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(c.builder.dir, "container", "gateway"))
	cmd.Env = append(c.env, "GATEWAY_ADDR="+addr, "GATEWAY_JOURNAL="+filepath.Join(c.data, "container-journal"))
	cmd.Stderr = os.Stderr
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("container: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		res, err := http.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
			c.mu.Lock()
			c.cmd, c.done = cmd, done
			c.mu.Unlock()
			return addr, nil
		}
		select {
		case err := <-done:
			return "", fmt.Errorf("container: it ended: %w", errors.Join(err, io.ErrUnexpectedEOF))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop lets the container finish its responses and send its events.
func (c *container) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return nil
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case err := <-c.done:
		return err
	case <-time.After(closeTime + 10*time.Second):
		return errors.Join(errors.New("container: it does not stop"), c.cmd.Process.Kill())
	}
}
