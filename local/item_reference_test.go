package main

import (
	"strings"
	"testing"
)

// TestItemsOfANeighbourCannotBeReferredTo: a response's items are kept by the
// provider under ids that tell of no workspace.
func TestItemsOfANeighbourCannotBeReferredTo(t *testing.T) {
	t.Parallel()
	n := share(t)
	reference := `{"model":"gpt-4o-mini","input":[{"role":"user","content":"x"},{"type":"item_reference","id":"msg_1"}]}`
	for _, c := range []struct{ path, body string }{
		{"/responses", reference},
		{"/responses", strings.Replace(reference, `"type":"item_reference",`, "", 1)},
		{"/responses", strings.Replace(reference, "item_reference", `item\u005freference`, 1)},
		{"/proxy/responses", reference},
	} {
		before := n.mock.Bill().Total.Requests
		got := n.call("POST", c.path, c.body, as(n.mine)...)
		if got.status != 403 || !strings.Contains(got.body, "input[1]") || n.mock.Bill().Total.Requests != before {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.status, got.body)
		}
	}
	sent := `{"model":"gpt-4o-mini","input":[{"role":"user","content":"x"},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"y","annotations":[]}]},{"role":"user","content":"z"}]}`
	if got := n.call("POST", "/responses", sent, as(n.mine)...); got.status != 200 {
		t.Errorf("an item that is sent: %d %s", got.status, got.body)
	}
	// A provider of one workspace takes them; the mock keeps no items.
	if got := n.call("POST", "/responses", strings.Replace(reference, "gpt-4o-mini", "@mock/gpt-4o-mini", 1)); got.status == 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
	// By translation nobody keeps anything.
	got := n.call("POST", "/responses", strings.Replace(reference, "gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5", 1))
	if got.status != 400 || !strings.Contains(got.body, "input[1]") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
