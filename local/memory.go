package main

import (
	"os"
	"runtime/debug"
	"time"
)

// heapGrowth is how much of what lives on the heap may be added to it, in
// percent, before garbage is collected. Little lives there, most buffers are
// used again and collections are rare: Go's own 100 costs memory and gains
// next to nothing.
const heapGrowth = 50

// limitHeap sets the growth of the heap, unless the environment does.
func limitHeap() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}

// shedEvery is how often pages of the program that were mapped are given back.
// Those in use return with a few hundred short faults: less than a thousandth of
// this time.
const shedEvery = time.Second
