package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gateway/functions/assembly"
	webconsole "gateway/functions/console"
	"gateway/functions/expiry"
	"gateway/functions/logs"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/app/logexport"
	"gateway/shared/app/mux"
	"gateway/shared/app/notices"
	"gateway/shared/app/plane"
	"gateway/shared/app/telemetry"
	"gateway/shared/audit"
	"gateway/shared/egress"
	"gateway/shared/host"
	"gateway/shared/host/meter"
	"gateway/shared/host/metric"
	"gateway/shared/identity"
	"gateway/shared/identity/signing"
	"gateway/shared/notice"
	"gateway/shared/notice/folder"
	"gateway/shared/observe"
	"gateway/shared/relay"
	"gateway/shared/relay/batchrun"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/export"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/lastused"
	"gateway/shared/usage/segment"
)

// gateway is everything that runs in the process.
type gateway struct {
	options     options
	stores      *stores
	core        *app.Core
	mock        *mockServer
	server      *host.Server
	sender      *audit.Sender
	made        *app.BootstrapResult // the keys that were made for an empty store
	initialKeys app.First            // keys that the environment sets for an empty store
	ignored     []string             // variables with keys that the stores do not have
	relay       *relay.Relay         // nil where the container's own main serves
	metrics     *host.Server         // nil: not enabled
	workers     []worker
}

// worker is a part of the process that runs until its context ends.
type worker func(ctx context.Context) error

// sweepEvery is the interval between checks for records left by a dead process.
const sweepEvery = 10 * time.Second

// open makes the gateway from its folder.
func open(ctx context.Context, o options) (_ *gateway, err error) {
	g := &gateway{options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.stores, err = openStores(ctx, o); err != nil {
		return nil, err
	}
	if err = g.startMock(); err != nil {
		return nil, err
	}
	policy, err := egressPolicy(o.addr, g.mockHost())
	if err != nil {
		return nil, err
	}
	retention, err := usage.ParseRetention(os.Getenv("GATEWAY_BODY_RETENTION_DAYS"), os.Getenv("GATEWAY_RECORD_RETENTION_DAYS"))
	if err != nil {
		return nil, err
	}
	prices := os.Getenv("GATEWAY_PRICES_URL")
	if err := app.CheckPricesURL(policy, prices); err != nil {
		return nil, fmt.Errorf("GATEWAY_PRICES_URL: %w", err)
	}
	if err := signing.Check(os.Getenv(signing.Env)); err != nil {
		return nil, err
	}
	backends := g.stores.Backends
	backends.Journal = g.stores.Journal
	g.core = app.New(backends, app.Settings{
		Stopping:  ctx.Done(),
		Retention: retention,
		PricesURL: prices, FetchPrices: true,
		Egress: policy, BlockInline: os.Getenv("BLOCK_INLINE_CONFIG") == "true", StandardHTTP: o.serve.Standard,
		PublicURL: os.Getenv("GATEWAY_PUBLIC_URL"), Mailer: mailer(o.data), SigningKey: os.Getenv(signing.Env),
		Ledger: app.LedgerHooks(g.stores.Journal, func() app.Recorder { return g.sender }, g.stores.Store),
	})
	g.sender = audit.NewBackgroundSender(g.core.Resources, g.core.Audit)
	g.core.Records = g.sender
	// An empty store is filled while the routes are made: neither waits for the other.
	begun := make(chan error, 1)
	go func() { begun <- g.begin(ctx) }()
	err = g.assemble()
	if err = errors.Join(<-begun, err); err != nil && g.server != nil {
		g.server.Close()
	}
	return g, err
}

// mailer writes mails into a folder beside the stores.
func mailer(data string) notice.Mailer {
	from := os.Getenv("GATEWAY_MAIL_FROM")
	if from == "" {
		from = "gateway@localhost"
	}
	return folder.Open(filepath.Join(data, "mail"), from)
}

// startMock starts the mock provider, if it is wanted.
func (g *gateway) startMock() error {
	if !g.options.mock {
		return nil
	}
	var err error
	g.mock, err = newMock()
	return err
}

// mockHost is the mock provider's host and port; "" without one.
func (g *gateway) mockHost() string {
	if g.mock == nil {
		return ""
	}
	return strings.TrimPrefix(g.mock.URL(), "http://")
}

// begin fills an empty store.
func (g *gateway) begin(ctx context.Context) (err error) {
	first, err := firstKeys()
	if err != nil {
		return err
	}
	if g.mock != nil {
		first.MockURL = g.mock.URL() + "/v1"
	}
	g.initialKeys = first
	if g.made, err = g.core.Bootstrap(ctx, first); err != nil || g.made != nil {
		return err
	}
	for _, preset := range []struct{ name, key string }{{"GATEWAY_ADMIN_KEY", first.AdminKey}, {"GATEWAY_WORKSPACE_KEY", first.WorkspaceKey}} {
		if preset.key == "" {
			continue
		}
		_, known, err := g.core.Store.Table(store.Keys).Get(ctx, identity.CredentialKey(identity.SecretOf(preset.key)), true)
		if err != nil {
			return err
		}
		if !known {
			g.ignored = append(g.ignored, preset.name)
		}
	}
	return nil
}

// firstKeys are the keys that the environment sets for an empty store. Each must fit into a
// header and a shell command, and the two must differ.
func firstKeys() (app.First, error) {
	f := app.First{AdminKey: os.Getenv("GATEWAY_ADMIN_KEY"), WorkspaceKey: os.Getenv("GATEWAY_WORKSPACE_KEY"), AllowInline: true}
	for name, key := range map[string]string{"GATEWAY_ADMIN_KEY": f.AdminKey, "GATEWAY_WORKSPACE_KEY": f.WorkspaceKey} {
		if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || r == '\'' }) {
			return f, fmt.Errorf("%s must contain only visible ASCII characters without spaces and quotes", name)
		}
	}
	if f.AdminKey != "" && f.AdminKey == f.WorkspaceKey {
		return f, errors.New("GATEWAY_ADMIN_KEY and GATEWAY_WORKSPACE_KEY must differ")
	}
	return f, nil
}

// assemble puts the data plane, the administration and the workers together.
func (g *gateway) assemble() error {
	sender := g.sender
	archive := segment.New(g.core.Store, g.core.Bucket, segment.Options{Retention: g.core.Retention, WorkspaceRetention: g.core.RetentionDays})
	totals, metrics, err := meter.ListenTotals()
	if err != nil {
		return err
	}
	g.metrics = metrics
	sink := totals.Sink(g.stores.Journal)
	g.relay = plane.New(g.core, sink, assembly.Plane(plane.Options{Translators: plane.Translators(), Drain: g.options.drain}))
	data := relay.NewMux(g.relay, assembly.DataPlane())
	admin, err := console.New(g.core, sender, assembly.Administration(g.core, archive)...)
	if err != nil {
		return err
	}
	if g.server, err = host.Listen(g.options.addr, webconsole.Handler(g.options.serve.Pages.Handler(g.options.serve.Aliases.Handler(meter.Page(totals, g.core.MayReadMetrics, &mux.Handler{Data: data, Admin: admin, Pages: g.options.serve.DataPages})))), g.options.serve); err != nil {
		return err
	}
	exporter := telemetry.Exporter(g.core)
	totals.AddCounter(metric.Dropped, exporter.Dropped)
	queue := observe.NewQueue(exporter)
	g.workers = []worker{
		g.usageWorker(archive, queue),
		queue.Run,
		g.auditWorker(),
		func(ctx context.Context) error { sender.Run(ctx, sweepEvery); return nil },
		g.every(time.Minute, "compact", archive.Compact),
		g.every(time.Hour, "cache sweep", plane.NewCache(g.core, nil).Sweep),
		g.every(time.Hour, "retention", archive.Retain),
		g.every(time.Hour, "retention of feedback", func(ctx context.Context) error {
			rated := feedback.New(g.core.Store, g.core.Now, g.core.Retention.Records, g.core.RetentionDays)
			return rated.Retain(ctx, feedback.Places{Organizations: archive.Organizations, Workspaces: g.core.Workspaces})
		}),
		g.every(time.Minute, "budget repair", func(ctx context.Context) error { _, err := g.core.Ledger.RepairAll(ctx); return err }),
		g.every(noticePace, "notices", notices.Worker(g.core).Run),
		g.every(10*time.Second, "key expiry and rotation", (&expiry.Worker{Resources: g.core.Resources, Sealer: g.core.Sealer}).Run),
	}
	if g.metrics != nil {
		g.workers = append(g.workers, g.metrics.Run)
	}
	if g.core.Exports != nil {
		exports := logexport.Worker(g.core, archive, export.Standard)
		g.workers = append(g.workers, exports.Run, g.every(time.Hour, "export sweep", exports.Sweep))
	}
	if g.core.RunQueue != nil {
		runner := batchrun.New(plane.Runner(g.core, g.relay, data, batchPace))
		g.workers = append(g.workers, runner.Run, g.every(sweepEvery, "batch sweep", runner.Sweep))
	}
	return nil
}

// noticePace is how often to look for notices and deliveries that are due.
const noticePace = 2 * time.Second

// batchPace is how fast batches run; tests hurry.
var batchPace = batchrun.DefaultTiming

// maxBatch is how many usage records are worked on at once. Half of the usual batch saves
// about 3 MiB and makes a request take 1 percent longer; a quarter would save 2 MiB more
// and make it 5 percent.
const maxBatch = 500

func (g *gateway) usageWorker(archive *segment.Archive, queue *observe.Queue) worker {
	g.stores.Journal.Watch(logs.Followed)
	used := lastused.NewRecorder(g.core.Store)
	stored := func(ctx context.Context, records []usage.Record) {
		used.Record(ctx, records)
		queue.Offer(ctx, records)
	}
	w := usage.Worker{Source: g.stores.Journal, Ingester: archive, Settler: g.core.Ledger, OnStored: stored, MaxRecords: maxBatch, OnError: logged("usage worker")}
	return w.Run
}

// auditWorker moves audit records from the queue to the table.
func (g *gateway) auditWorker() worker {
	w := audit.NewWorker(g.core.Store)
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			messages, err := g.core.Audit.Receive(ctx, 10, 20*time.Second, 30*time.Second)
			if err != nil || len(messages) == 0 {
				if err != nil && ctx.Err() == nil {
					logged("audit worker")(err)
					pause(ctx, time.Second)
				}
				continue
			}
			late := context.WithoutCancel(ctx)
			failed, err := w.Handle(late, messages)
			if err != nil {
				logged("audit worker")(err)
				continue
			}
			if err := g.core.Audit.Delete(late, without(messages, failed)...); err != nil {
				logged("audit worker")(err)
			}
		}
		return nil
	}
}

// every runs a job at an interval until the process stops.
func (g *gateway) every(d time.Duration, name string, job func(context.Context) error) worker {
	return func(ctx context.Context) error {
		for {
			pause(ctx, d)
			if ctx.Err() != nil {
				return nil
			}
			if err := job(ctx); err != nil && ctx.Err() == nil {
				logged(name)(err)
			}
		}
	}
}

// serve reports that the gateway is ready and serves until ctx ends. Then it finishes
// running requests and brings the books up to date.
func (g *gateway) serve(ctx context.Context, out io.Writer) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for _, w := range g.workers {
		wg.Go(func() {
			if err := w(working); err != nil {
				logged("worker")(err)
			}
		})
	}
	g.announce(out)
	if g.relay != nil {
		defer context.AfterFunc(ctx, g.relay.Drain)()
	}
	err := g.server.Run(ctx)
	if g.relay != nil {
		g.relay.Close()
	}
	stop()
	wg.Wait()
	return errors.Join(err, g.close())
}

func (g *gateway) close() error {
	var errs []error
	if g.mock != nil {
		errs = append(errs, g.mock.Close())
	}
	if g.core != nil {
		g.core.CloseIdleConnections()
	}
	if g.stores != nil {
		errs = append(errs, g.stores.Close())
	}
	return errors.Join(errs...)
}

// announce prints what a newcomer needs.
func (g *gateway) announce(out io.Writer) {
	base := "http://" + g.server.Addr().String() + "/v1"
	how, key := "Try it, with the workspace key of the first start in GATEWAY_WORKSPACE_KEY", `"x-gateway-api-key: $GATEWAY_WORKSPACE_KEY"`
	if g.made != nil {
		if g.initialKeys.WorkspaceKey == "" {
			how, key = "Try it", "'x-gateway-api-key: "+g.made.WorkspaceKey+"'"
		}
		fmt.Fprintf(out, "admin key      %s\nworkspace key  %s\n", shown(g.made.AdminKey, g.initialKeys.AdminKey, "GATEWAY_ADMIN_KEY"), shown(g.made.WorkspaceKey, g.initialKeys.WorkspaceKey, "GATEWAY_WORKSPACE_KEY"))
		if g.initialKeys.AdminKey == "" || g.initialKeys.WorkspaceKey == "" {
			fmt.Fprintln(out, "(shown this once; the store keeps only their hashes)")
		}
		fmt.Fprintln(out)
	}
	if len(g.ignored) > 0 {
		fmt.Fprintf(out, "%s: ignored, because the stores have other keys since their first start.\n", strings.Join(g.ignored, ", "))
		if g.options.store == "embedded" {
			fmt.Fprintf(out, "If the admin key is lost, stop the gateway and make a new one with: gateway recover -data %s\n", g.options.data)
		}
		fmt.Fprintln(out)
	}
	if g.mock != nil {
		fmt.Fprintf(out, "%s:\n  curl %s/chat/completions -H %s -H 'x-gateway-provider: @mock' -H 'content-type: application/json' \\\n    -d '{\"model\":\"gpt-4o-mini\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'\n\n", how, base, key)
	}
	if g.metrics != nil {
		fmt.Fprintf(out, "metrics for Prometheus on http://%s/metrics\n", g.metrics.Addr())
	}
	fmt.Fprintf(out, "console on http://%s%s\n", g.server.Addr(), webconsole.Path)
	fmt.Fprintf(out, "gateway ready on %s\n", base)
}

// shown returns the printed form of a key: only a generated key is shown. A configured key is
// known to its user, and printed text often ends up in a log.
func shown(key, configured, variable string) string {
	if configured != "" {
		return "(as in " + variable + ")"
	}
	return key
}

// defaultEgress is what a laptop may reach besides public addresses.
const defaultEgress = "127.0.0.0/8,::1"

// egressPolicy specifies what may be dialled: public addresses and what GATEWAY_EGRESS_ALLOW
// names, but never the gateway itself. Custom hosts may also be what TRUSTED_CUSTOM_HOSTS
// names, or this machine when neither variable is set. When one is set, only the built-in
// mock provider is added, as a custom host.
func egressPolicy(addr, mock string) (egress.Policy, error) {
	allow, set := os.LookupEnv("GATEWAY_EGRESS_ALLOW")
	if !set {
		allow = defaultEgress
	}
	p, err := egress.ParseAllow(allow)
	if err != nil {
		return p, fmt.Errorf("GATEWAY_EGRESS_ALLOW: %w", err)
	}
	if p.RootCAs, err = egress.Roots(os.Getenv(egress.EnvRoots)); err != nil {
		return p, err
	}
	if trusted, isSet := os.LookupEnv("TRUSTED_CUSTOM_HOSTS"); isSet {
		if p.TrustedHosts, err = egress.ParseTrusted(trusted); err != nil {
			return p, fmt.Errorf("TRUSTED_CUSTOM_HOSTS: %w", err)
		}
	} else if !set {
		p.TrustedHosts = egress.DefaultTrusted(false)
	}
	if mock != "" {
		p.TrustedHosts = append(p.TrustedHosts, mock)
	}
	if own, err := netip.ParseAddrPort(addr); err == nil {
		p.OwnAddrs = append(p.OwnAddrs, own)
	} else if _, port, err := net.SplitHostPort(addr); err == nil {
		for _, ip := range []string{"127.0.0.1", "::1"} {
			if own, err := netip.ParseAddrPort(net.JoinHostPort(ip, port)); err == nil {
				p.OwnAddrs = append(p.OwnAddrs, own)
			}
		}
	}
	return p, nil
}

func logged(what string) func(error) {
	return func(err error) { slog.Error(what, "error", err.Error()) }
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
