package provider

import "testing"

func TestNotKnownSuggestsAProvider(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"opneai": "is not a provider of this gateway; did you mean openai?", "antropic": "is not a provider of this gateway; did you mean anthropic?",
		"zzzzzzzzzzzzzzz": "is not a provider of this gateway; GET /v1/providers/catalog lists those that are",
	} {
		if got := UnknownProviderMessage(id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
