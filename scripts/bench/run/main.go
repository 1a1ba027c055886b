// Command run measures the gateway beside a bare httputil.ReverseProxy, on one machine and
// in the same run: both forward the same work to the same fast upstream, in turn, for
// several rounds. Trust the CPU microseconds for each request (user and system, of the
// process itself), because other load on the machine affects both. The gateway runs with
// everything turned on: keys, logs with bodies, usage events, the embedded store.
//
//	go run ./scripts/bench/run -rounds 3 -d 2s
//
// It prints tables of medians: CPU for each request and its ratio to the bare proxy,
// latency, peak memory, and the time from start to the first good answer. With -check it
// fails if a target of the project is missed. Everything stays on loopback.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	readyLine  = "gateway ready on "
	listenLine = "listening on "
	coldEmpty  = "an empty folder"
	coldUsed   = "a folder that was used"
)

var programs = map[string]string{
	"gateway": "gateway/local", "goproxy": "gateway/scripts/bench/goproxy", "mockupstream": "gateway/scripts/bench/mockupstream",
}

var gatewayEnv = []string{"GATEWAY_ADMIN_KEY=" + adminKey, "GATEWAY_WORKSPACE_KEY=" + workspaceKey}

// Limits of the flags, so that a run ends within minutes.
const (
	maxRounds = 20
	maxTime   = 10 * time.Second
	maxCold   = 50
)

func main() {
	log.SetFlags(log.Ltime)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 3, "rounds, at most 20")
	flag.DurationVar(&s.d, "d", 2*time.Second, "length of one measurement, at most 10s")
	flag.DurationVar(&s.warm, "warm", 300*time.Millisecond, "warm-up before a measurement")
	flag.DurationVar(&s.patience, "wait", 0, "wait up to this long for a quiet machine before a measurement")
	secure := flag.Bool("tls", false, "measure over HTTPS upstreams, too: HTTP/1.1, HTTP/2 and bursts on cold connections")
	sessions := flag.Bool("sockets", false, "measure realtime sessions, and nothing else")
	only := flag.String("cells", "", "comma list of cells; empty: all")
	cold := flag.Int("cold", 10, "start-ups to measure, at most 50; 0: none")
	out := flag.String("out", "", "file for every sample, as JSON")
	beside := flag.String("peers", "", "measure other gateways beside this one, and write the page to this file; nothing else")
	check := flag.Bool("check", false, "exit with 1 if a target of the project is missed")
	flag.Parse()
	switch {
	case !measurable:
		return errors.New("CPU time of other processes can be measured on Linux only")
	case s.rounds < 1 || s.rounds > maxRounds || s.d <= 0 || s.d > maxTime || s.warm < 0 || s.warm > maxTime || *cold < 0 || *cold > maxCold:
		return errors.New("a flag is out of its range: see -help")
	}
	use := append(slices.Clone(cells), limitedCells()...)
	if *secure {
		use = append(use, secureCells()...)
	}
	if *only != "" {
		names := strings.Split(*only, ",")
		use = slices.DeleteFunc(slices.Clone(use), func(c cell) bool { return !slices.Contains(names, c.name) })
		if len(use) != len(names) {
			return fmt.Errorf("-cells %s: not all of these are cells", *only)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *beside != "" {
		if *only == "" {
			use = slices.Clone(cells)
		}
		return comparePeers(ctx, s, use, *beside)
	}
	if *sessions {
		misses, err := sockets(ctx, os.Stdout)
		if err != nil {
			return err
		}
		return missed(misses, *check)
	}
	all, starts, err := bench(ctx, s, use, *cold)
	if err != nil {
		return err
	}
	if *out != "" {
		b, err := json.MarshalIndent(all, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*out, b, 0o644); err != nil {
			return err
		}
	}
	return missed(report(os.Stdout, use, all, starts), *check)
}

// missed prints the missed targets; with -check it returns an error for them.
func missed(misses []string, check bool) error {
	for _, m := range misses {
		fmt.Println("missed:", m)
	}
	if check && len(misses) > 0 {
		return fmt.Errorf("%d targets missed", len(misses))
	}
	return nil
}

// bench builds and starts everything, measures, and stops everything.
func bench(ctx context.Context, s settings, use []cell, cold int) (all []sample, starts map[string][]coldStart, err error) {
	dir, err := os.MkdirTemp("", "gateway-bench-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	bin, err := build(ctx, dir, programs)
	if err != nil {
		return nil, nil, err
	}
	const free = "127.0.0.1:0"
	upstream, err := start(listenLine, nil, bin["mockupstream"], "-addr", free, "-secure", dir)
	if err != nil {
		return nil, nil, err
	}
	defer upstream.stop()
	proxy, err := start(listenLine, nil, bin["goproxy"], "-addr", free, "-upstream", upstream.base)
	if err != nil {
		return nil, nil, err
	}
	defer proxy.stop()
	data := filepath.Join(dir, "data")
	ca := filepath.Join(dir, "ca.pem")
	gateway, err := start(readyLine, append([]string{"GATEWAY_CA_BUNDLE=" + ca}, gatewayEnv...), bin["gateway"], "-addr", free, "-data", data, "-mock=false")
	if err != nil {
		return nil, nil, err
	}
	targets := []target{
		{name: proxyName, base: proxy.base, pid: proxy.pid()},
		{name: gatewayName, base: gateway.base, pid: gateway.pid(), headers: gatewayHeaders(upstream.base), translates: true},
	}
	if slices.ContainsFunc(use, func(c cell) bool { return c.keys > 0 }) {
		if targets[1].keys, err = createLimits(ctx, gateway.base, 1000); err != nil {
			gateway.stop()
			return nil, nil, err
		}
	}
	for over, file := range map[string]string{"tls1": "http1.addr", "tls2": "http2.addr"} {
		if !slices.ContainsFunc(use, func(c cell) bool { return c.over == over }) {
			continue
		}
		addr, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, nil, err
		}
		host := "https://" + string(addr)
		bare, err := start(listenLine, nil, bin["goproxy"], "-addr", free, "-upstream", host, "-ca", ca)
		if err != nil {
			gateway.stop()
			return nil, nil, err
		}
		defer bare.stop()
		targets = append(targets, target{name: proxyName, base: bare.base, pid: bare.pid(), over: over},
			target{name: gatewayName, base: gateway.base, pid: gateway.pid(), headers: gatewayHeaders(host), over: over, translates: true})
	}
	all, err = measure(ctx, s, use, targets, upstream)
	gateway.stop()
	if err != nil {
		return all, nil, err
	}
	if err := checkRecorded(data); err != nil {
		return all, nil, err
	}
	if cold == 0 {
		return all, nil, nil
	}
	starts = make(map[string][]coldStart)
	folders := map[string]func(i int) string{
		coldEmpty: func(i int) string { return filepath.Join(dir, "cold", strconv.Itoa(i)) },
		coldUsed:  func(int) string { return filepath.Join(dir, "cold", "0") },
	}
	for _, name := range []string{coldEmpty, coldUsed} {
		args := func(i int) []string { return []string{"-addr", free, "-data", folders[name](i), "-mock=false"} }
		if starts[name], err = coldStarts(ctx, cold, bin["gateway"], args, upstream.base); err != nil {
			return all, starts, err
		}
	}
	return all, starts, nil
}

// checkRecorded checks that the gateway recorded usage during the measurement: otherwise the comparison
// would be unfair to the proxy.
func checkRecorded(data string) error {
	var size int64
	err := filepath.Walk(data, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	log.Printf("the gateway's folder holds %.1f MiB after the run", float64(size)/(1<<20))
	if size < 1<<20 {
		return fmt.Errorf("the gateway's folder holds %d bytes: it has not logged what it served", size)
	}
	return nil
}

// createLimits creates a workspace with a budget, and keys in it that each have a budget and
// a rate limit, all too large to be reached. It returns the keys.
func createLimits(ctx context.Context, base string, n int) ([]string, error) {
	var workspace struct{ ID string }
	budget := map[string]any{"type": "cost", "credit_limit": 1_000_000}
	err := administer(ctx, base+"/v1/admin/workspaces", map[string]any{"name": "limited", "usage_limits": []any{budget}}, &workspace)
	if err != nil {
		return nil, err
	}
	keys := make([]string, n)
	for i := range keys {
		var created struct{ Key string }
		err := administer(ctx, base+"/v1/api-keys/workspace/service", map[string]any{
			"name": fmt.Sprintf("limited-%d", i), "workspace_id": workspace.ID, "scopes": []string{"completions.write"}, "usage_limits": budget,
			"rate_limits": []any{map[string]any{"type": "requests", "unit": "rpm", "value": 1_000_000_000}},
		}, &created)
		if err != nil {
			return nil, err
		}
		keys[i] = created.Key
	}
	return keys, nil
}

// administer posts to the administration API and decodes the response.
func administer(ctx context.Context, url string, body, out any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("x-gateway-api-key", adminKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %d %s", url, resp.StatusCode, b)
	}
	return json.Unmarshal(b, out)
}
