package batchrun

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRoomOfAnswers(t *testing.T) {
	list := func(n int, of string) string {
		return `{"model":"m","input":[` + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + `]}`
	}
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"a text":             {`{"input":"a, b, c"}`, 1},
		"a few":              {list(3, `"x"`), 1},
		"many":               {list(320, `"x"`), 20},
		"tokens":             {list(100_000, `7`), 1},
		"lists of tokens":    {list(320, `[7,8]`), 20},
		"more than there is": {list(100_000, `"x"`), memoryUnits},
		"none":               {`{"model":"m"}`, 1},
		"no object":          {`[]`, 1},
		"broken":             {`{"input":["x",`, 1},
		"broken inside":      {`{"input":["x" "y"]}`, 1},
	} {
		if got := unitsOf([]byte(c.body)); got != c.want {
			t.Errorf("%s: %d units, want %d", name, got, c.want)
		}
	}
}

// Rows never hold more memory than there is, each gets its turn, and none waits forever once the
// process stops.
func TestRowsShareTheRoom(t *testing.T) {
	r := newResponseMemory()
	var held, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		n := 1 + i*7%memoryUnits
		wg.Go(func() {
			if !r.take(t.Context(), n) {
				t.Error("no room")
				return
			}
			now := held.Add(int64(n))
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
			held.Add(-int64(n))
			r.release(n)
		})
	}
	wg.Wait()
	if most.Load() > memoryUnits || held.Load() != 0 || len(r.free) != memoryUnits {
		t.Errorf("%d held at most, %d left, %d free", most.Load(), held.Load(), len(r.free))
	}
	ctx, stop := context.WithCancel(t.Context())
	if !r.take(ctx, memoryUnits-1) {
		t.Fatal("no room")
	}
	stop()
	if r.take(ctx, 2) || len(r.free) != 1 {
		t.Errorf("%d free", len(r.free))
	}
}
