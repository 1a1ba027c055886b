package tools

import (
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/routes"
)

// telling is the stream to a client. Proxies end streams that are silent for long, as one is
// while a tool works or the model reasons. So if nothing else is sent for a while, it sends a
// keep-alive, which clients ignore.
type telling struct {
	mu    sync.Mutex // guards writes to the client
	began bool       // the response has started
	over  bool
	last  time.Time
	timer *time.Timer // nil: no keep-alives are sent yet
}

// begun reports whether the response has started. If not, telling sends nothing from now on, and
// a different response can be sent.
func (t *telling) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || !t.began
	return t.began
}

// event sends an event, which may be the last.
func (t *telling) event(d *routes.ToolDesk, event []byte, last bool, f *fault.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.over, t.last = true, last, time.Now()
	d.Event(event, last, f)
}

// keep starts keep-alives, which may be the first bytes for the client.
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

// end stops keep-alives: from here on only the caller writes.
func (t *telling) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over = true; t.timer != nil {
		t.timer.Stop()
	}
}
