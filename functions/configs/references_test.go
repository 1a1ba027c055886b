package configs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/guard"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

func TestWhatAConfigNamesMustExist(t *testing.T) {
	h := newInstallation(t)
	other := provide(t, h, store.Scope{Org: admintest.Org, Workspace: h.Two}, "others")
	foreign := provide(t, h, store.Scope{Org: admintest.OtherOrg, Workspace: h.Three}, "foreign")
	gone := provide(t, h, store.Scope{Org: admintest.Org, Workspace: h.One}, "gone")
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(sc, provider.KindProvider, gone)
		if err != nil {
			return err
		}
		return tx.Archive(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	slug := save(t, h, "a", `{"provider":"@a"}`)
	for config, field := range map[string]string{
		`{"provider":"@nowhere"}`:                    "config.provider",
		`{"provider":"@others"}`:                     "config.provider",
		`{"provider":"@` + other + `"}`:              "config.provider",
		`{"provider":"@foreign"}`:                    "config.provider",
		`{"provider":"@` + foreign + `"}`:            "config.provider",
		`{"provider":"@gone"}`:                       "config.provider",
		`{"virtual_key":"nowhere"}`:                  "config.virtual_key",
		`{"override_params":{"model":"@nowhere/m"}}`: "config.override_params.model",
		`{"default_params":{"model":"@nowhere/m"}}`:  "config.default_params.model",
		`{"provider":"@a","cache":{"mode":"semantic","embedder":{"provider":"@nowhere","model":"m"}}}`:                                      "config.cache.embedder.provider",
		`{"provider":"@a","input_guardrails":["pg-nowhere"]}`:                                                                               "config.input_guardrails[0]",
		`{"provider":"@a","afterRequestHooks":[{"id":"pg-nowhere"}]}`:                                                                       "config.afterRequestHooks[0]",
		`{"provider":"@a","prompt_id":"pp-nowhere"}`:                                                                                        "config.prompt_id",
		`{"provider":"openai","api_key":"sk-aaaaaaaa","custom_host":"https://169.254.169.254/v1"}`:                                          "config.custom_host",
		`{"provider":"openai","api_key":"sk-aaaaaaaa","custom_host":"http://localhost:1"}`:                                                  "config.custom_host",
		`{"provider":"azure-ai","api_key":"sk-aaaaaaaa","azure_foundry_url":"https://10.0.0.1"}`:                                            "config.azure_foundry_url",
		`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@a"},{"strategy":{"mode":"single"},"targets":[{"provider":"@nowhere"}]}]}`: "config.targets[1].targets[0].provider",
	} {
		for _, call := range [][2]string{{"POST", "/configs"}, {"PUT", "/configs/" + slug}} {
			h.Do(call[0], call[1], key, `{"name":"x","config":`+config+`}`).RequireFault(400, "AB01", field)
		}
	}
	if n := h.Do("GET", "/configs", key, nil).OK().At("total"); n != 1.0 {
		t.Errorf("%v configs", n)
	}
	got := h.Do("POST", "/configs", key, `{"name":"x","config":{"strategy":{"mode":"fallback"},"targets":[{"provider":"@x"},{"provider":"@a","input_guardrails":["pg"]},{"virtual_key":"y","custom_host":"https://127.0.0.1"}]}}`).Failure()
	if len(got.Fields) != 4 {
		t.Errorf("not all at once: %v", got.Fields)
	}
	// The errors for a foreign and a missing resource are the same, but for the name that was sent.
	a := h.Do("POST", "/configs", key, `{"name":"x","config":{"provider":"@others"}}`)
	b := h.Do("POST", "/configs", key, `{"name":"x","config":{"provider":"@nowhere"}}`)
	if strings.ReplaceAll(a.Comparable(), "others", "nowhere") != b.Comparable() {
		t.Errorf("%s | %s", a.Body, b.Body)
	}
}

func TestWhatAConfigNamesMayBeNamedByIDToo(t *testing.T) {
	h := newInstallation(t)
	id := provide(t, h, store.Scope{Org: admintest.Org, Workspace: h.One}, "x")
	for _, config := range []string{
		`{"provider":"@` + id + `"}`, `{"virtual_key":"x"}`, `{"virtual_key":"@x"}`, `{"override_params":{"model":"@x/m"}}`,
		`{"provider":"openai","api_key":"sk-aaaaaaaa","custom_host":"https://models.example.com/v1"}`, `{"retry":{"attempts":1}}`, `{"passthrough":true}`,
	} {
		h.Do("POST", "/configs", key, `{"name":"x","config":`+config+`}`).OK()
	}
	// Guardrails may be the organization's.
	rec := resource.Record{Scope: store.Scope{Org: admintest.Org}, Kind: guard.KindGuardrail, ID: resource.NewID(), Slug: "pg-all", Name: "g", Status: "active", Body: []byte("{}")}
	if err := h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
	h.Do("POST", "/configs", key, `{"name":"x","config":{"provider":"@a","input_guardrails":["pg-all"]}}`).OK()
}

// A stored credential goes to its own host only, so a config that sends it
// elsewhere could never be served.
func TestStoredCredentialsGoToTheirOwnHost(t *testing.T) {
	h := newInstallation(t)
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	id := resource.NewID()
	in := resource.Record{Scope: sc, Kind: provider.KindIntegration, ID: id, Slug: "own", Name: "own", Status: provider.StatusActive, Body: []byte(`{"ai_provider_id":"openai","configurations":{"custom_host":"https://models.example.com/v1/"}}`)}
	of := resource.Record{Scope: sc, Kind: provider.KindProvider, ID: resource.NewID(), Slug: "own", Name: "own", Status: provider.StatusActive, Body: []byte(`{"integration_id":"` + id + `","integration_slug":"own","ai_provider_id":"openai"}`)}
	err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
		if err := tx.Create(&in); err != nil {
			return err
		}
		return tx.Create(&of)
	})
	if err != nil {
		t.Fatal(err)
	}
	for config, field := range map[string]string{
		`{"provider":"@own","custom_host":"https://models.example.com/v1"}`:                                                                                        "",
		`{"provider":"openai","api_key":"sk-aaaaaaaa","custom_host":"https://other.example.com"}`:                                                                  "",
		`{"provider":"@own","custom_host":"https://other.example.com/v1"}`:                                                                                         "config.custom_host",
		`{"provider":"@a","custom_host":"https://models.example.com/v1"}`:                                                                                          "config.custom_host",
		`{"virtual_key":"own","custom_host":"https://models.example.com.evil.example/v1"}`:                                                                         "config.custom_host",
		`{"override_params":{"model":"@own/m"},"custom_host":"https://models.example.com/v1/extra"}`:                                                               "config.custom_host",
		`{"strategy":{"mode":"fallback"},"custom_host":"https://other.example.com","targets":[{"provider":"openai","api_key":"sk-aaaaaaaa"},{"provider":"@own"}]}`: "config.targets[1].custom_host",
	} {
		got := h.Do("POST", "/configs", key, `{"name":"x","config":`+config+`}`)
		if field == "" {
			got.OK()
		} else {
			got.RequireFault(400, "AB01", field)
		}
	}
}

func TestManyMissingThingsAreABoundedAnswer(t *testing.T) {
	h := newInstallation(t)
	var targets []string
	for i := range 100 {
		targets = append(targets, fmt.Sprintf(`{"provider":"@no-%d"}`, i))
	}
	got := h.Do("POST", "/configs", key, `{"name":"x","config":{"strategy":{"mode":"fallback"},"targets":[`+strings.Join(targets, ",")+`]}}`).Failure()
	if len(got.Fields) != maxBad {
		t.Errorf("%d errors", len(got.Fields))
	}
}
