package response

import (
	"strconv"
	"sync"
	"testing"
)

func TestWhatIsWrittenAndNeverRead(t *testing.T) {
	t.Parallel()
	var p CachedPrompts
	one, other := PromptSource{Org: "o", Workspace: "w", Key: "k", Model: "m", Session: "s"}, PromptSource{Org: "o", Workspace: "v", Key: "k", Model: "m", Session: "s"}
	p.Observe(one, false, true)
	if p.Any() || p.IsUnread(one) {
		t.Error("what is read is remembered")
	}
	for i := range UnreadLimit + 2 {
		if p.IsUnread(one) != (i >= UnreadLimit) {
			t.Errorf("after %d writes: %v", i, p.IsUnread(one))
		}
		p.Observe(one, true, false)
	}
	if p.IsUnread(other) {
		t.Error("another workspace is told of it")
	}
	p.Observe(one, false, false)
	if !p.IsUnread(one) {
		t.Error("an answer without a cache counts")
	}
	p.Observe(one, true, true)
	if p.IsUnread(one) || p.Any() {
		t.Error("what was read is still told")
	}
}

func TestItsMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var p CachedPrompts
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range maxRemembered {
				of := PromptSource{Session: strconv.Itoa(g*maxRemembered + i)}
				p.Observe(of, true, i%3 == 0)
				p.IsUnread(of)
			}
		})
	}
	all.Wait()
	if n := len(p.written); n > maxRemembered || n == 0 {
		t.Errorf("%d are remembered", n)
	}
}
