// Command container serves the entire data plane in one long-running process, including
// requests that a function cannot serve, such as exact pass-through and large bodies. Usage
// events are written to a journal on disk and forwarded to the queue.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gateway/functions/assembly"
	"gateway/functions/console"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/app/onaws/profiles"
	"gateway/shared/app/plane"
	"gateway/shared/host"
	"gateway/shared/host/meter"
	"gateway/shared/host/originauth"
	"gateway/shared/host/placement"
	"gateway/shared/relay"
	"gateway/shared/usage"
	"gateway/shared/wire/release"
)

// Variables of the container, besides those of an installation.
const (
	envAddr    = "GATEWAY_ADDR"    // to listen on; ":8080"
	envJournal = "GATEWAY_JOURNAL" // folder of the journal; in the temporary folder
)

// How usage events travel: ten to a call, none waits longer than sendDelay.
const (
	sendBatch = 10
	sendDelay = 100 * time.Millisecond
)

func main() {
	host.LogJSON()
	onaws.Use(profiles.Load) // it may run on machines that have roles
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("the container ended", "error", err.Error())
		os.Exit(1)
	}
}

// front is what is in front of the routes: the console, header aliases, and the web pages that may
// call MCP servers and the data plane.
func front(o host.Options, routes http.Handler) http.Handler {
	return console.Handler(o.Pages.Handler(o.Aliases.Handler(o.DataPages.Handler(routes))))
}

// run serves until ctx ends; then running answers finish and their events are
// sent.
func run(ctx context.Context) error {
	core, err := onaws.Open(ctx, onaws.Bucket, onaws.UsageQueue, onaws.AuditQueue, onaws.Keys)
	if err != nil {
		return err
	}
	secrets, err := onaws.OriginSecrets()
	if err != nil {
		return err
	}
	m := meter.Process(onaws.Name())
	defer m.Flush()
	totals, exposed, err := meter.ListenTotals()
	if err != nil {
		return err
	}
	m.AddTo(totals)
	journal, err := usage.OpenJournal(variable(envJournal, filepath.Join(os.TempDir(), "journal")), usage.JournalOptions{Bucket: core.Bucket})
	if err != nil {
		return fmt.Errorf("container: %w", err)
	}
	vectors, err := onaws.Vectors(ctx)
	if err != nil {
		return errors.Join(err, journal.Close())
	}
	data := plane.New(core.Core, m.Sink(journal), assembly.Plane(plane.Options{Translators: plane.Translators(), Vectors: vectors}))
	mux := relay.NewMux(data, assembly.DataPlane())
	options, err := serveOptions(core.Core)
	if err != nil {
		return errors.Join(err, journal.Close())
	}
	server, err := host.Listen(variable(envAddr, ":8080"), healthy(meter.Page(totals, core.MayReadMetrics, host.RequireEdge(originauth.ForStore(secrets, core.Store).OnRejected(m.CountBypass), front(options, mux)))), options)
	if err != nil {
		return errors.Join(err, journal.Close())
	}
	sender := usage.Worker{
		Source: journal, Ingester: &usage.QueueSink{Queue: core.Usage, Bucket: core.Bucket},
		MaxRecords: sendBatch, MaxDelay: sendDelay,
		OnError: func(err error) { slog.Error("usage events are not queued yet", "error", err.Error()) },
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	var left error
	wg.Go(func() { left = sender.Run(working) })
	if exposed != nil {
		slog.Info("metrics ready", "addr", exposed.Addr().String())
		wg.Go(func() {
			if err := exposed.Run(working); err != nil {
				slog.Error("metrics are not served", "error", err.Error())
			}
		})
	}
	slog.Info("container ready", "addr", server.Addr().String())
	defer context.AfterFunc(ctx, data.Drain)()
	err = server.Run(ctx)
	data.Close()
	stop()
	wg.Wait()
	core.CloseIdleConnections()
	return errors.Join(err, left, journal.Close())
}

// serveOptions are for a process that only a load balancer connects to: connections come from a
// few addresses, and the balancer closes idle ones.
func serveOptions(core *app.Core) (host.Options, error) {
	o := host.DefaultOptions()
	o.Standard, o.MaxPerAddress = core.StandardHTTP, 0
	o.IdleTime = placement.BalancerIdle + time.Minute
	return o.FromEnvironment()
}

// healthy answers the load balancer's check before everything else.
func healthy(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			_, _ = io.WriteString(w, release.Health) // who has gone needs no response
			return
		}
		h.ServeHTTP(w, r)
	})
}

func variable(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
