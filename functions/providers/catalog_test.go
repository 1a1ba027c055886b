package providers

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/testkit/admintest"
)

// The catalog lists every provider, and what it calls required is what an integration must
// have, for every way to authenticate.
func TestCatalogMatchesTheValidationOfIntegrations(t *testing.T) {
	h := newInstallation(t)
	var list struct{ Data []catalogEntry }
	if err := json.Unmarshal(h.Do("GET", "/providers/catalog", admintest.NoScopesWs, nil).OK().Body, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != len(provider.All()) {
		t.Fatalf("%d entries, want %d", len(list.Data), len(provider.All()))
	}
	forms := 0
	for _, e := range list.Data {
		p, ok := provider.ByID(e.ID)
		if !ok || e.Name == "" || len(e.Auth) == 0 || e.Auth[0].Scheme == "" || len(e.Fields) != len(p.Fields) {
			t.Errorf("%+v", e)
			continue
		}
		for _, form := range e.Auth {
			forms++
			cfg := map[string]any{}
			if form.Field != nil {
				cfg[*form.Field] = *form.Value
			}
			var want []string
			for _, d := range p.ValidateConfigurations("", cfg) {
				name, field := strings.CutPrefix(d.Field, "configurations.")
				if !field {
					name = "api_key"
				}
				if strings.HasPrefix(d.Message, "is required by") {
					want = append(want, name)
				}
			}
			got := slices.DeleteFunc(slices.Clone(form.Required), func(f string) bool { return form.Field != nil && f == *form.Field })
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s %v: required %v, the validation wants %v", e.ID, form.Value, got, want)
			}
		}
	}
	of := func(id string) []endingModel {
		return list.Data[slices.IndexFunc(list.Data, func(e catalogEntry) bool { return e.ID == id })].Ending
	}
	openai, days := of("openai"), []string{}
	for _, m := range openai {
		if m.Shutdown != nil {
			days = append(days, *m.Shutdown)
		}
		if m.Model == "gpt-4o-mini" && (*m.Deprecation != "2026-10-14" || *m.Shutdown != "2027-01-14") {
			t.Errorf("%+v", m)
		}
	}
	if !slices.IsSorted(days) || !slices.ContainsFunc(openai, func(m endingModel) bool { return m.Model == "gpt-4o-mini" }) || slices.ContainsFunc(openai, func(m endingModel) bool { return m.Model == "gpt-realtime" }) || of("groq") == nil {
		t.Errorf("models that end: %+v", openai)
	}
	if forms <= len(list.Data) {
		t.Errorf("%d ways to authenticate of %d providers", forms, len(list.Data))
	}
	var chat struct{ Data []catalogEntry }
	if err := json.Unmarshal(h.Do("GET", "/providers/catalog?operation=rerank", key, nil).OK().Body, &chat); err != nil {
		t.Fatal(err)
	}
	if n := len(chat.Data); n == 0 || n == len(list.Data) || slices.ContainsFunc(chat.Data, func(e catalogEntry) bool { return !slices.Contains(e.Operations, "rerank") }) {
		t.Errorf("%d providers serve rerank", n)
	}
}

func TestNamesOfRoutesAreNoSlugs(t *testing.T) {
	h := newInstallation(t)
	integrate(t, h, admintest.Org, "", "own", open(h.One))
	for _, slug := range []string{"catalog", "health"} {
		h.Do("POST", "/providers", key, `{"name":"My Provider","integration_id":"own","slug":"`+slug+`"}`).RequireFault(400, "AB01", "slug")
	}
}
