package realtime

import (
	"sync"

	wires "gateway/shared/dialect/live"
	"gateway/shared/dialect/realtime"
	"gateway/shared/relay/session"
)

// account tracks the charges that have started and not ended, and charges each once.
type account struct {
	desk session.Controller
	mu   sync.Mutex
	open map[string]*thing
	seen map[string]struct{} // ids of ended charges
}

// thing is a charge in progress.
type thing struct {
	turn    session.Turn // nil: it was rejected after the provider had started it
	covered int64        // seconds reserved
}

// maxSeen limits the remembered ids.
const maxSeen = 4096

// take applies steps. event is the message that reports them. The error is a fault of the key,
// of a limit or of a budget; the other steps are applied anyway.
func (a *account) take(steps []wires.Step, event []byte) (refused error) {
	for i := range steps {
		if err := a.step(&steps[i], event); err != nil && refused == nil {
			refused = err
		}
	}
	return refused
}

func (a *account) step(s *wires.Step, event []byte) error {
	switch s.Do {
	case wires.Begins:
		return a.begins(s)
	case wires.Grows:
		return a.grows(s)
	case wires.Ends:
		a.ends(s, event)
	}
	return nil
}

func (a *account) begins(s *wires.Step) error {
	a.mu.Lock()
	_, over := a.seen[s.ID]
	known := over || a.open[s.ID] != nil
	a.mu.Unlock()
	if known {
		return nil
	}
	turn, err := a.desk.Begin(&session.Wanted{Input: s.Input, Output: s.Output, Seconds: s.Seconds, Model: s.Model})
	if err != nil {
		turn = nil
	}
	a.mu.Lock()
	if a.open == nil {
		a.open = map[string]*thing{}
	}
	a.open[s.ID] = &thing{turn: turn, covered: s.Seconds}
	a.mu.Unlock()
	return err
}

// grows reserves more for a charge in progress.
func (a *account) grows(s *wires.Step) error {
	a.mu.Lock()
	t := a.open[s.ID]
	a.mu.Unlock()
	if t == nil || t.turn == nil || s.Seconds <= t.covered {
		return nil
	}
	c, can := t.turn.(interface{ Cover(w *session.Wanted) error })
	if !can {
		return nil
	}
	if err := c.Cover(&session.Wanted{Seconds: s.Seconds, Model: s.Model}); err != nil {
		return err
	}
	t.covered = s.Seconds
	return nil
}

func (a *account) ends(s *wires.Step, event []byte) {
	a.mu.Lock()
	_, over := a.seen[s.ID]
	if a.seen == nil || len(a.seen) >= maxSeen {
		a.seen = map[string]struct{}{}
	}
	a.seen[s.ID] = struct{}{}
	t := a.open[s.ID]
	delete(a.open, s.ID)
	a.mu.Unlock()
	if over {
		return
	}
	done := &realtime.Done{ID: s.ID, Status: s.Finish, Usage: s.Usage, Model: s.Model, Served: s.Served}
	switch {
	case t != nil && t.turn != nil && s.Usage.Known():
		t.turn.End(done, event)
	case t != nil && t.turn != nil:
		t.turn.Drop(nil)
	case s.Usage.Known():
		a.desk.ChargeLate(done, event)
	}
}

// leave releases the reservations of charges that never ended.
func (a *account) leave() {
	a.mu.Lock()
	open := a.open
	a.open = nil
	a.mu.Unlock()
	for _, t := range open {
		if t.turn != nil {
			t.turn.Drop(nil)
		}
	}
}
