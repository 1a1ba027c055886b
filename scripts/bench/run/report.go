package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"gateway/scripts/bench/loadgen"
)

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// figures are the medians of one cell on one target.
type figures struct {
	cpu, low, high     float64
	rps, p50, p99, gap float64
	errors, requests   int
	noUsage, noFinish  int
	disturbed          bool
}

func summarise(all []sample, cell, target string) figures {
	var f figures
	var mine []sample
	for _, s := range all {
		if s.Cell == cell && s.Target == target {
			mine = append(mine, s)
			f.errors, f.requests = f.errors+s.Errors, f.requests+s.Requests
			f.noUsage, f.noFinish = f.noUsage+s.NoUsage, f.noFinish+s.NoFinish
		}
	}
	used := quiet(mine)
	f.disturbed = slices.ContainsFunc(used, func(s sample) bool { return s.OtherCPUs > busyOthers })
	of := func(get func(sample) float64) []float64 {
		var v []float64
		for _, s := range used {
			v = append(v, get(s))
		}
		return v
	}
	cpu := of(func(s sample) float64 { return s.CPUMicros })
	f.cpu = median(cpu)
	if len(cpu) > 0 {
		f.low, f.high = slices.Min(cpu), slices.Max(cpu)
	}
	f.rps = median(of(func(s sample) float64 { return s.RPS }))
	f.p50 = median(of(func(s sample) float64 { return s.Latency.P50 }))
	f.p99 = median(of(func(s sample) float64 { return s.Latency.P99 }))
	f.gap = median(of(func(s sample) float64 { return s.Gap.P99 }))
	return f
}

// report writes the tables and returns which targets of the project are missed.
func report(w io.Writer, use []cell, all []sample, cold map[string][]coldStart) (misses []string) {
	fmt.Fprintln(w, "\n| work | bare proxy, CPU µs/req | gateway, CPU µs/req | spread | ratio | target | gateway req/s | p50 µs | p99 µs | flaws |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
	peak := map[string]float64{}
	for _, s := range all {
		peak[s.Target] = max(peak[s.Target], s.PeakMiB)
	}
	disturbed := false
	for _, c := range use {
		proxy, ours := summarise(all, c.name, proxyName), summarise(all, c.name, gatewayName)
		disturbed = disturbed || proxy.disturbed || ours.disturbed
		than := proxy
		if c.than != "" {
			than = summarise(all, c.than, gatewayName)
		}
		ratio := ours.cpu / than.cpu
		goal := fmt.Sprintf("≤ %.2f", c.limitRatio)
		missed := c.limitRatio > 0 && ratio > c.limitRatio
		if c.limitMicros > 0 {
			goal = fmt.Sprintf("≤ %.0f µs", c.limitMicros)
			missed = ours.cpu > c.limitMicros
		}
		if missed {
			misses = append(misses, fmt.Sprintf("%s: %.1f µs, %.2f of %s; target %s", c.name, ours.cpu, ratio, cmp.Or(c.than, "the bare proxy"), goal))
		}
		flaws := ours.flaws()
		if flaws != "" {
			misses = append(misses, c.name+": "+flaws)
		}
		fmt.Fprintf(w, "| %s: %s | %.1f | %.1f | %.0f–%.0f | %.2f | %s | %.0f | %.0f | %.0f | %s |\n",
			c.name, c.what, proxy.cpu, ours.cpu, ours.low, ours.high, ratio, goal, ours.rps, ours.p50, ours.p99, flaws)
	}
	if disturbed {
		fmt.Fprintln(w, "\nSome figures come from a machine that was busy with other work: read the ratios, not the microseconds.")
	}
	fmt.Fprintf(w, "\n| memory | gateway | bare proxy |\n|---|--:|--:|\n| peak resident, MiB (target < %d) | %.1f | %.1f |\n", limitPeakMiB, peak[gatewayName], peak[proxyName])
	if peak[gatewayName] >= limitPeakMiB {
		misses = append(misses, fmt.Sprintf("peak memory %.1f MiB; target < %d", peak[gatewayName], limitPeakMiB))
	}
	return append(misses, reportCold(w, cold)...)
}

func (f figures) flaws() string {
	out := ""
	for _, x := range []struct {
		n    int
		what string
	}{{f.errors, "errors"}, {f.noUsage, "without usage"}, {f.noFinish, "without finish_reason"}} {
		if x.n > 0 {
			out += fmt.Sprintf("%d of %d %s ", x.n, f.requests, x.what)
		}
	}
	return out
}

func reportCold(w io.Writer, cold map[string][]coldStart) (misses []string) {
	if len(cold) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n| from start to first good answer | ms, median (target < %d) | least–most | CPU ms | MiB then |\n|---|--:|--:|--:|--:|\n", limitColdMS)
	for _, name := range []string{coldEmpty, coldUsed} {
		var ms, cpu, mib []float64
		for _, c := range cold[name] {
			ms, cpu, mib = append(ms, c.Milliseconds), append(cpu, c.CPUMilliseconds), append(mib, c.ResidentMiB)
		}
		if len(ms) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s | %.1f | %.0f–%.0f | %.1f | %.1f |\n", name, median(ms), slices.Min(ms), slices.Max(ms), median(cpu), median(mib))
		if median(ms) >= limitColdMS {
			misses = append(misses, fmt.Sprintf("start-up with %s %.1f ms; target < %d", name, median(ms), limitColdMS))
		}
	}
	return misses
}

// cell is one kind of work.
type cell struct {
	name, what string
	kind       string // chat or stream
	size       int    // approximate size of a request in bytes
	chunks     int
	conns      int
	burst      int    // so many requests at once on cold connections, repeatedly; 0: a steady load
	over       string // the upstream is reached by HTTPS: tls1 uses HTTP/1.1, tls2 HTTP/2
	translated bool   // the gateway translates it for an Anthropic upstream; the proxy cannot
	keys       int    // number of keys with limits that take turns; zero: one key without limits
	than       string // the cell of the gateway that limitRatio compares with; empty: this cell of the bare proxy
	// limit is the target for the gateway: at most limitRatio times the CPU of what it is
	// compared with, or at most limitMicros a request. Zero: no such target.
	limitRatio, limitMicros float64
}

var cells = []cell{
	{name: "chat1k", what: "chat, request of 1 KB, answer of 1 KB", kind: "chat", size: 1024, conns: 32, limitRatio: 1},
	{name: "chat100k", what: "chat, request of 100 KB", kind: "chat", size: 100_000, conns: 16, limitRatio: 1},
	{name: "stream100", what: "stream of 100 chunks, as fast as may be", kind: "stream", size: 1024, chunks: 100, conns: 16, limitRatio: 1},
	{name: "anthropic", what: "OpenAI request to an Anthropic upstream and back", kind: "chat", size: 1024, conns: 32, translated: true, limitMicros: 90},
	{name: "anthropic-stream", what: "the same as a stream of 100 chunks", kind: "stream", size: 1024, chunks: 100, conns: 16, translated: true, limitMicros: 300},
}

// limitedCells are the first cells again with limits: a key with a budget and a rate limit
// in a workspace with a budget, and the first cell with a thousand such keys.
func limitedCells() (all []cell) {
	add := func(c cell, suffix, what string, keys int) {
		c.than, c.name, c.what = c.name, c.name+suffix, c.what+", "+what
		c.keys, c.limitRatio, c.limitMicros = keys, 1.2, 0
		all = append(all, c)
	}
	for _, c := range cells {
		add(c, "-limited", "with budgets and a rate limit", 1)
	}
	add(cells[0], "-keys", "with budgets and a rate limit on each of 1,000 keys", 1000)
	return all
}

// secureCells are the cells of -tls: the first cells again over HTTPS, and bursts.
func secureCells() (all []cell) {
	for _, over := range []string{"tls1", "tls2"} {
		by := map[string]string{"tls1": "HTTP/1.1", "tls2": "HTTP/2"}[over]
		for _, c := range cells[:3] {
			c.name, c.what, c.over = c.name+"-"+over, c.what+", HTTPS by "+by, over
			all = append(all, c)
		}
		all = append(all, cell{name: "burst-" + over, what: "100 requests at once without a connection, HTTPS by " + by, kind: "chat", size: 1024, conns: 100, burst: 100, over: over, limitRatio: 1})
	}
	return all
}

// Process-wide limits, in every cell.
const (
	limitPeakMiB = 64
	limitColdMS  = 40
)

// target is a server that gets the load.
type target struct {
	name    string
	base    string
	over    string // which cells it runs
	headers func(translated bool) map[string]string
	keys    []string // keys of the gateway with limits
	// translates: cells for an Anthropic upstream are translated, not forwarded.
	translates bool
	peer       bool // a cell that it cannot do is omitted
	pid        int
}

// spec is the load of a cell on a target.
func (t target) spec(c cell) loadgen.Spec {
	model := "gpt-4o-mini"
	if c.translated && t.translates {
		model = "claude-3-5-sonnet-20241022"
	}
	s := loadgen.Spec{
		URL: t.base + "/v1/chat/completions", Headers: map[string]string{}, Kind: c.kind, Chunks: c.chunks, Conns: c.conns,
		Body: loadgen.Body(model, c.size, c.kind == "stream"),
	}
	if t.headers != nil {
		s.Headers = t.headers(c.translated)
	}
	if c.keys > 0 && len(t.keys) > 0 {
		s.Keys = t.keys[:c.keys]
		s.Headers["x-gateway-api-key"] = s.Keys[0]
	}
	return s
}

const (
	gatewayName  = "gateway"
	proxyName    = "ReverseProxy"
	workspaceKey = "gw-workspace-key-of-the-benchmark"
	adminKey     = "gw-admin-key-of-the-benchmark"
)

// gatewayHeaders name the upstream in the request, as a client does that has its own
// credential and host.
func gatewayHeaders(upstream string) func(bool) map[string]string {
	return func(translated bool) map[string]string {
		provider := "openai"
		if translated {
			provider = "anthropic"
		}
		return map[string]string{
			"x-gateway-api-key": workspaceKey, "x-gateway-provider": provider,
			"x-gateway-custom-host": fmt.Sprintf("%s/v1", upstream), "Authorization": "Bearer sk-bench",
		}
	}
}
