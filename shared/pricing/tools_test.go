package pricing

import "testing"

// Moderation models are free, and their rows have the prices of tools all the same.
func TestPricesOfToolsAloneAreKnown(t *testing.T) {
	t.Parallel()
	book := Default()
	for model, want := range map[string]bool{"omni-moderation-latest": true, "text-moderation-latest": true, "gpt-4o-mini": false, "whisper-1": false, "gpt-image-1": false} {
		p, ok := book.Price("openai", model, Options{})
		if !ok || p.OnlyTools() != want {
			t.Errorf("%s: found %t, only tools %t", model, ok, p.OnlyTools())
		}
	}
}
