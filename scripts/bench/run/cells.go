package main

import (
	"fmt"

	"gateway/scripts/bench/loadgen"
)

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
	peer       bool // a cell that it cannot do is left out
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
