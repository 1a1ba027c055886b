package gate

import (
	"encoding/json"
	"sync"
	"testing"

	"gateway/shared/mcp"
)

// A cursor cannot select a page that was cached for another user or for all.
func TestCursorCannotSelectForeignPage(t *testing.T) {
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

// A server can be probed again while other requests read its state. The race detector checks
// this.
func TestPeerIsReadDuringProbe(t *testing.T) {
	t.Parallel()
	p := new(peer)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 100 {
			p.mu.Lock()
			p.stateless, p.sessioned, p.hello = true, true, json.RawMessage(`{"capabilities":{"tools":{}}}`)
			p.mu.Unlock()
		}
	})
	wg.Go(func() {
		for range 100 {
			_ = p.capabilities()
			(&bridge{peer: p, up: new(mcp.Upstream)}).chooseWithoutSession()
			chooseBridge(new(requestState), &bridge{peer: p, up: new(mcp.Upstream)}, new(session))
		}
	})
	wg.Wait()
	if p.capabilities()["tools"] == nil {
		t.Error("what it can do is not told")
	}
}
