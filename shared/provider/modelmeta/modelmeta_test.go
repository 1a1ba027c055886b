package modelmeta

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/shared/provider"
)

func TestTableIsConsistent(t *testing.T) {
	t.Parallel()
	for k, m := range table() {
		if _, ok := provider.ByID(k.provider); !ok {
			t.Errorf("%s: there is no such provider", k.provider)
		}
		for _, in := range m.Inputs {
			if !strings.Contains("image audio video document", in) {
				t.Errorf("%s reads %q", k.model, in)
			}
		}
	}
	gpt, h := Of("openai", "gpt-4o-mini"), http.Header{}
	gpt.SetHeaders(h)
	if gpt.Window != 128000 || h.Get("Deprecation") != "@1791936000" || h.Get("Sunset") != "Thu, 14 Jan 2027 00:00:00 GMT" {
		t.Errorf("%+v %v", gpt, h)
	}
	if at, err := http.ParseTime(h.Get("Sunset")); err != nil || !at.Equal(time.Date(2027, 1, 14, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%v %v", at, err)
	}
	h = http.Header{}
	Of("openai", "a-model-of-tomorrow").SetHeaders(h)
	Of("anthropic", "claude-opus-4-5").SetHeaders(h)
	if len(h) != 0 || Of("bedrock", "claude-opus-4-20250514") != nil {
		t.Errorf("an end that nobody knows: %v", h)
	}
}

func TestRowsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, row := range []string{
		"openai m 1 1 - -", "openai m x 1 - - -", "openai m 0 1 - - -", "openai m 1 1 - 2026-13-01 -", "openai m 1 1 - 2026-02-01 2026-01-01",
		"openai m 1 1 - - -\nopenai m 1 1 - - -",
	} {
		if _, err := parse(row); err == nil {
			t.Errorf("%q is taken", row)
		}
	}
}
