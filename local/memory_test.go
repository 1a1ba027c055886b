package main

import (
	"context"
	"math"
	"runtime/debug"
	"testing"
)

func TestTheMemoryLimitAlwaysLeavesRoomForGarbage(t *testing.T) {
	for _, live := range []int64{0, 5 << 20, 13 << 20, 40 << 20, 1 << 30} {
		if limit := limitFor(live); limit < softLimit || limit < live+live/4 {
			t.Errorf("%d bytes in use: limit %d", live, limit)
		}
	}
	if limit := limitFor(1 << 30); limit < 2<<30 {
		t.Errorf("a gibibyte in use: limit %d, so that garbage is collected more often than Go would", limit)
	}
	if limit := limitFor(13 << 20); limit != softLimit {
		t.Errorf("usual work raises the limit to %d", limit)
	}
}

func TestTheMemoryLimitEndsWithTheGateway(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64 / 2)
	defer debug.SetMemoryLimit(before)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := boundMemory(ctx); err != nil {
		t.Fatal(err)
	}
	if after := debug.SetMemoryLimit(-1); after != math.MaxInt64/2 {
		t.Errorf("the limit is left at %d", after)
	}
}
