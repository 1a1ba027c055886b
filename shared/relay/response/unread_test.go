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
	p.Note(one, false, true)
	if p.Any() || p.Unread(one) {
		t.Error("what is read is remembered")
	}
	for i := range UnreadLimit + 2 {
		if p.Unread(one) != (i >= UnreadLimit) {
			t.Errorf("after %d writes: %v", i, p.Unread(one))
		}
		p.Note(one, true, false)
	}
	if p.Unread(other) {
		t.Error("another workspace is told of it")
	}
	p.Note(one, false, false)
	if !p.Unread(one) {
		t.Error("an answer without a cache counts")
	}
	p.Note(one, true, true)
	if p.Unread(one) || p.Any() {
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
				p.Note(of, true, i%3 == 0)
				p.Unread(of)
			}
		})
	}
	all.Wait()
	if n := len(p.written); n > maxRemembered || n == 0 {
		t.Errorf("%d are remembered", n)
	}
}
