package route

import "testing"

// TestBreakersObserveTheEndOfStreams: a response that is still coming is judged when
// it has ended, for its target and for the strategies around it.
func TestBreakersObserveTheEndOfStreams(t *testing.T) {
	tree := compile(t, guardedFallback, Strict)
	c, now := clocked()
	const path = "config.targets[0]"
	walk := func(status int) {
		t.Helper()
		w := tree.Start(Context{Breakers: c})
		if leaf, f := w.Next(Outcome{}); f != nil || leaf.Path != path {
			t.Fatalf("%+v %v", leaf, f)
		}
		if leaf, _ := w.Next(Outcome{Status: 200, Final: true, Pending: true}); leaf != nil {
			t.Fatalf("%+v", leaf)
		}
		w.Settle(status)
		w.Settle(status) // says nothing twice
	}
	walk(502)
	if c.State(path) != Closed {
		t.Fatal("one broken stream opened a breaker of two failures")
	}
	walk(502)
	if c.State(path) != Open {
		t.Fatal("two broken streams did not open it")
	}
	*now = now.Add(testCooldown)
	w := tree.Start(Context{Breakers: c})
	if leaf, _ := w.Next(Outcome{}); leaf.Path != path {
		t.Fatalf("%+v", leaf)
	}
	_, _ = w.Next(Outcome{Status: 200, Pending: true})
	if c.State(path) == Closed {
		t.Error("the probe was believed before its answer had ended")
	}
	w.Settle(200)
	if c.State(path) != Closed {
		t.Error("a probe whose answer came whole did not close it")
	}
}
