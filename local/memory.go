package main

import (
	"os"
	"runtime/debug"
	"time"
)

// softLimit is how much memory Go may take before it collects garbage earlier
// than it otherwise would. Usual work stays below; what holds much for a moment,
// such as a merge of segments or large bodies, then does not take twice as much.
const softLimit = 22 << 20

// boundMemory sets softLimit, unless the environment has another.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
}

// shedEvery is how often pages of the program that were mapped are given back.
// Those in use return with a few hundred short faults: less than a thousandth of
// this time.
const shedEvery = time.Second

// shedSinglesEvery is the same where pages come one by one: those in use return
// with more faults, and those not in use gather slowly.
const shedSinglesEvery = 10 * time.Second
