package toolrun

import (
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/routes"
)

// telling is the stream to a client. Proxies end streams that are silent for long, as one
// is while a tool works or the model thinks. So where nothing else is sent for a while, a
// sign of life is, which clients ignore.
type telling struct {
	mu    sync.Mutex // the right to write to the client
	began bool       // the answer has
	over  bool
	last  time.Time
	timer *time.Timer // nil: no signs are sent yet
}

// begun tells whether the answer has begun. If not, telling sends nothing from now on:
// another answer takes its place.
func (t *telling) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || !t.began
	return t.began
}

// event sends one, which may be the last.
func (t *telling) event(d *routes.ToolDesk, event []byte, last bool, f *fault.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.over, t.last = true, last, time.Now()
	d.Event(event, last, f)
}

// keep has signs of life sent from now on, even as the first thing that the client hears.
func (t *telling) keep(d *routes.ToolDesk, quiet time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil || len(d.Sign) == 0 {
		return
	}
	t.last = time.Now()
	t.timer = time.AfterFunc(quiet, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		left := quiet - time.Since(t.last)
		switch {
		case t.over:
			return
		case left <= 0:
			t.began, t.last, left = true, time.Now(), quiet
			d.Event(d.Sign, false, nil)
		}
		t.timer.Reset(left)
	})
}

// end stops the signs of life: from here on only the caller writes.
func (t *telling) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over = true; t.timer != nil {
		t.timer.Stop()
	}
}
