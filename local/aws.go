package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gateway/local/embedded"
	"gateway/local/source"
	"gateway/shared/app"
	"gateway/shared/egress"
	"gateway/shared/host"
	"gateway/shared/relay/batch"
	"gateway/shared/usage"
)

// awsSide is what -store aws needs; see package cloud.
type awsSide interface {
	Configure()
	Advise(error) error
	StartEmulators(ctx context.Context, log io.Writer) (data string, end func() error, err error)
	Backends(context.Context) (app.Backends, error)
	Core(context.Context) (*app.Core, error)
	Functions(ctx context.Context, core *app.Core, dir, data, allow, trusted string) (http.Handler, []func(context.Context) error, func() error, error)
}

// aws is set with the build tag aws, and in tests; otherwise it is nil.
var aws awsSide

// becomeLinked builds this program with AWS linked and runs the result in its place.
func becomeLinked(ctx context.Context, o options, args []string) error {
	root, err := source.Root()
	if err != nil {
		return fmt.Errorf("AWS is not linked into this program (go build -tags aws ./local links it): %w", err)
	}
	program, err := filepath.Abs(filepath.Join(o.data, "program", "gateway"))
	if err != nil {
		return err
	}
	begun := time.Now()
	fmt.Fprintln(os.Stderr, "building the gateway with AWS linked ...")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "aws", "-o", program, "./local")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build -tags aws ./local: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	fmt.Fprintf(os.Stderr, "built the gateway with AWS linked in %s\n", time.Since(begun).Round(10*time.Millisecond))
	return become(ctx, program, args)
}

// startEmulators starts AWS emulators if the command line selects AWS and no variable names an
// endpoint. The folder for this run's journals is deleted with them; only the function binaries
// remain. end stops the emulators.
func startEmulators(ctx context.Context, o *options, log io.Writer) (end func() error, err error) {
	if o.store != "aws" {
		return func() error { return nil }, nil
	}
	data, end, err := aws.StartEmulators(ctx, log)
	if err == nil && data != "" {
		o.functions, o.data = o.functionsFolder(), data
	}
	return end, err
}

// functionsFolder is that of the functions' binaries.
func (o *options) functionsFolder() string {
	if o.functions != "" {
		return o.functions
	}
	return filepath.Join(o.data, "functions")
}

// openLambda serves through the real function binaries.
func openLambda(ctx context.Context, o options) (_ *gateway, err error) {
	g := &gateway{options: o, stores: &stores{close: func() error { return nil }}}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.core, err = aws.Core(ctx); err != nil {
		return nil, err
	}
	if err = g.startMock(); err != nil {
		return nil, err
	}
	if err = g.begin(ctx); err != nil {
		return nil, err
	}
	allow, trusted := functionEgress(g.mockHost())
	serve, workers, end, err := aws.Functions(ctx, g.core, o.functionsFolder(), o.data, allow, trusted)
	g.stores.close = end
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		g.workers = append(g.workers, w)
	}
	g.workers = append(g.workers, g.every(time.Minute, "batch sweep", func(ctx context.Context) error { return g.core.RunQueue.Send(ctx, batch.SweepMessage()) }))
	g.server, err = host.Listen(o.addr, serve, o.serve)
	return g, err
}

// functionEgress is what functions may call besides public addresses, and which hosts they
// may call by plain HTTP, in the same way as egressPolicy.
func functionEgress(mock string) (allow, trusted string) {
	allow, set := os.LookupEnv("GATEWAY_EGRESS_ALLOW")
	if !set {
		allow = defaultEgress
	}
	trusted, isSet := os.LookupEnv("TRUSTED_CUSTOM_HOSTS")
	if !isSet && !set {
		trusted = strings.Join(egress.DefaultTrusted(false), ",")
	}
	return allow, strings.Trim(trusted+","+mock, ",")
}

// stores are the stores of the process.
type stores struct {
	app.Backends
	Journal *usage.Journal
	close   func() error
}

// Close closes the open stores.
func (s *stores) Close() error { return s.close() }

// openStores opens the stores that the command line selects.
func openStores(ctx context.Context, o options) (*stores, error) {
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return nil, err
	}
	if o.store == "aws" {
		return openAWS(ctx, o)
	}
	s, err := embedded.Open(ctx, o.data, embedded.Options{Durable: o.durable, NoRing: o.noRing})
	if err != nil {
		return nil, err
	}
	return &stores{Backends: s.Backends, Journal: s.Journal, close: s.Close}, nil
}

// openAWS opens the stores on AWS, or on what AWS_ENDPOINT_URL names. Usage events wait in
// a journal in the folder, as they do in the container.
func openAWS(ctx context.Context, o options) (*stores, error) {
	b, err := aws.Backends(ctx)
	if err != nil {
		return nil, err
	}
	journal, err := usage.OpenJournal(filepath.Join(o.data, "journal"), usage.JournalOptions{Durable: o.durable, NoRing: o.noRing, Bucket: b.Bucket})
	if err != nil {
		return nil, err
	}
	return &stores{Backends: b, Journal: journal, close: func() error {
		return errors.Join(journal.Close(), b.Store.Close())
	}}, nil
}
