package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestGuardedStreamsOfEveryShape judges streams of every format of provider for every format of
// client, in each way: denied text does not arrive, redacted text arrives redacted, also in
// streams that are passed through in a native format.
func TestGuardedStreamsOfEveryShape(t *testing.T) {
	t.Parallel()
	r, _ := startShapes(t)
	text := "my hunter2 " + strings.Repeat("is safe and ", 30) + "sound"
	for _, c := range shapes() {
		for _, p := range shapes() {
			for _, way := range []string{"window", "hold"} {
				for _, g := range []struct{ name, guardrail string }{
					{"denied", forbids(`,"deny":true,"stream":"` + way + `"`)},
					{"redacted", `{"regexReplace":{"rule":"/hunter[0-9]/g","redactText":"***"},"stream":"` + way + `"}`},
				} {
					where := fmt.Sprintf("%s to %s, %s, %s", c.name, p.name, way, g.name)
					got := r.call("POST", c.path(p.model, true), c.body(p.model, "mock: no-tools say="+text+"\nHi", false, true), append([]string{"X-Gateway-Config", `{"output_guardrails":[` + g.guardrail + `]}`}, p.headers...)...)
					denied := g.name == "denied"
					switch {
					case strings.Contains(got.body, "hunter2"):
						t.Errorf("%s: %d %.300s", where, got.status, got.body)
					case denied && got.status != 446:
						t.Errorf("%s: %d %.300s", where, got.status, got.body)
					case !denied && (got.status != 200 || !strings.Contains(got.body, "***")):
						t.Errorf("%s: %d %.300s", where, got.status, got.body)
					}
				}
			}
		}
	}
}
