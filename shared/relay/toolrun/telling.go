package toolrun

import (
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/routes"
)

// telling is the stream to a client. Proxies end a stream that is silent for long, as it
// is while a tool works or the model is waited for: where nothing else is told, a sign of
// life is, which clients pass over.
type telling struct {
	mu    sync.Mutex // the right to write to the client
	began bool       // the answer has
	over  bool
	last  time.Time
	timer *time.Timer // nil: no signs are sent yet
}

// begun tells whether the answer has. Where it has not, nothing is told here any more:
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

// keep has signs sent from now on, also as the first that the client hears.
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

// end ends the signs: whoever answers from here on is alone.
func (t *telling) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over = true; t.timer != nil {
		t.timer.Stop()
	}
}
