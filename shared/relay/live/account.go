package live

import (
	"sync"

	wires "gateway/shared/dialect/live"
	"gateway/shared/dialect/realtime"
	"gateway/shared/relay/session"
)

// account holds what has begun and not ended, and books each thing once.
type account struct {
	desk session.Desk
	mu   sync.Mutex
	open map[string]*thing
	seen map[string]struct{} // ids of what has ended
}

// thing is something that costs money.
type thing struct {
	turn    session.Turn // nil: it was refused after the provider had begun it
	covered int64        // seconds that are reserved for
}

// maxSeen bounds the ids that are remembered.
const maxSeen = 4096

// take takes steps. event is the message that tells of them. The error is a fault of the
// key, of a limit or of a budget; the other steps are taken all the same.
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

// grows reserves for what something may use from now on.
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
		a.desk.Late(done, event)
	}
}

// leave gives back what is reserved for things that never ended.
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
