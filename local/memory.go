package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// softLimit is how much memory Go may take before it collects garbage earlier
// than it otherwise would. Usual work stays below; what holds much for a moment,
// such as a merge of segments or large bodies, then does not take twice as much.
const softLimit = 26 << 20

// boundMemory keeps Go's memory below limitFor what is in use, until ctx ends.
func boundMemory(ctx context.Context) error {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(softLimit))
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for ctx.Err() == nil {
		metrics.Read(live)
		debug.SetMemoryLimit(limitFor(int64(live[0].Value.Uint64())))
		pause(ctx, time.Second)
	}
	return nil
}

// limitFor is the limit where the last collection found so much in use. Under a
// limit that cannot be kept Go would collect without end: a fourth of what is in
// use is left for garbage, beside what Go needs for itself, and of what is beyond
// usual work as much again as Go would leave by itself.
func limitFor(live int64) int64 {
	const usual = 14 << 20
	return max(softLimit, live+live/4+9<<20+max(0, live-usual))
}

// shedEvery is how often pages of the program that were mapped are given back.
// Those in use return with a few hundred short faults: less than a thousandth of
// this time.
const shedEvery = time.Second

// shedSinglesEvery is the same where pages come one by one: those in use return
// with more faults, and those not in use gather slowly.
const shedSinglesEvery = 2 * time.Second
