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
