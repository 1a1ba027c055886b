package provider

import "testing"

func TestWhoTakesARecordingByItsAddress(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{"groq": true, "openai": false, "azure-openai": false} {
		own := Target{Provider: row(t, id), CustomHost: "https://llm.example.com/v1"}
		if bare := (Target{Provider: row(t, id)}); bare.TakesRecordingURL() != want || !own.TakesRecordingURL() {
			t.Errorf("%s: %t, a host of one's own %t", id, bare.TakesRecordingURL(), own.TakesRecordingURL())
		}
	}
}
