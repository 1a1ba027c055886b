// Command run measures the gateway beside a bare httputil.ReverseProxy, on one
// machine and in the same run: both forward the same work to the same fast
// upstream, in turn, for several rounds. The figure to trust is CPU
// microseconds a request of the process's own (user and system); the machine's
// other load falls on both. The gateway runs with everything on: keys, logs
// with bodies, usage events, the embedded store.
//
//	go run ./scripts/bench/run -rounds 3 -d 2s
//
// It prints tables of medians: CPU a request and its ratio to the bare proxy,
// latency, peak memory, time from start to first good answer. With -check it
// fails if a target of the project is missed. Everything stays on loopback.
package main
