package gate

import (
	"encoding/json"
	"sync"
	"testing"

	"gateway/shared/mcp"
)

// No cursor names the page that was kept for another user, nor the page of all.
func TestACursorNamesNobodyElsesPage(t *testing.T) {
	t.Parallel()
	const method, victim = "tools/list", "user:victim"
	all, theirs := listKeys(method, "", victim)
	_, own := listKeys(method, "", "")
	if own == all {
		t.Error("a caller without a name keeps its page for all")
	}
	for _, cursor := range []string{"\n" + victim, victim, "/" + victim, "\x00" + victim, "\n"} {
		common, own := listKeys(method, cursor, "user:other")
		for _, key := range []listKey{common, own} {
			if key == theirs || key == all {
				t.Errorf("cursor %q: %+v", cursor, key)
			}
		}
	}
}

// What a server says of itself and which eras it speaks may be learned anew while others
// read it. The race detector tells.
func TestWhatIsKnownOfAServerIsReadWhileItIsLearned(t *testing.T) {
	t.Parallel()
	p := new(peer)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 100 {
			p.mu.Lock()
			p.modern, p.legacy, p.hello = true, true, json.RawMessage(`{"capabilities":{"tools":{}}}`)
			p.mu.Unlock()
		}
	})
	wg.Go(func() {
		for range 100 {
			_ = p.capabilities()
			(&way{peer: p, up: new(mcp.Upstream)}).plain()
			chooseBridge(new(visit), &way{peer: p, up: new(mcp.Upstream)}, new(session))
		}
	})
	wg.Wait()
	if p.capabilities()["tools"] == nil {
		t.Error("what it can do is not told")
	}
}
