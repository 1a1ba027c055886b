package providers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route/rotation"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

const probedKey = "sk-a-key-of-the-provider"

// probed saves a provider of a kind at a host, with a key.
func probed(t *testing.T, h *admintest.Installation, slug, kind, host string) string {
	t.Helper()
	rec := integrate(t, h, admintest.Org, "", slug, open(h.One))
	if err := h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(rec.Scope, rec.Kind, rec.ID)
		if err != nil {
			return err
		}
		if rec.Body, err = encode(provider.Integration{AIProviderID: kind, AllowAllModels: true, Workspaces: []provider.WorkspaceAccess{open(h.One)}, Configurations: map[string]any{"custom_host": host}}); err != nil {
			return err
		}
		if err := rec.SetSecret(context.Background(), admintest.Sealer{}, provider.SecretKey, []byte(probedKey)); err != nil {
			return err
		}
		return tx.Update(&rec)
	}); err != nil {
		t.Fatal(err)
	}
	return h.Do("POST", "/providers", key, `{"name":"P","integration_id":"`+slug+`"}`).OK().Text("slug")
}

// A test says whose fault a failure is, and quotes neither the key nor the provider's response.
func TestProviderTestReportsTheFault(t *testing.T) {
	h := newInstallation(t)
	status, body := http.StatusOK, `{"data":[{"id":"a"},{"id":"b"}]}`
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+probedKey {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer up.Close()
	for kind, host := range map[string]string{"openai": up.URL + "/v1", "groq": up.URL + "/v1"} {
		at := "/providers/" + probed(t, h, "i-"+kind, kind, host) + "/test"
		a := h.Do("POST", at, key, nil).OK()
		if a.At("success") != true || a.At("models") != float64(2) || a.At("status_code") != float64(200) || a.At("cause") != nil {
			t.Errorf("%s: %s", kind, a.Body)
		}
	}
	at := "/providers/" + probed(t, h, "i-failing", "openai", up.URL+"/v1") + "/test"
	for _, c := range []struct {
		status      int
		body, cause string
	}{
		{401, `{"error":"bad key ` + probedKey + `"}`, "credentials"}, {403, "", "credentials"}, {404, "", "settings"}, {429, "", "provider"}, {503, "", "provider"}, {200, "<html>", "settings"}, {301, "", "settings"},
	} {
		status, body = c.status, c.body
		a := h.Do("POST", at, key, nil).OK()
		if a.At("success") != false || a.Text("cause") != c.cause || a.Text("message") == "" || strings.Contains(string(a.Body), probedKey) {
			t.Errorf("%d: %s", c.status, a.Body)
		}
	}
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for kind, want := range map[string]struct{ host, cause string }{
		"openai": {dead.URL + "/v1", "network"}, "cohere": {up.URL, "unsupported"}, "modal": {"http://192.0.2.1:1/v1", "network"},
	} {
		a := h.Do("POST", "/providers/"+probed(t, h, "d-"+kind, kind, want.host)+"/test", key, nil).OK()
		if a.At("success") != false || a.Text("cause") != want.cause {
			t.Errorf("%s at %s: %s", kind, want.host, a.Body)
		}
	}
	// The integration itself, for those who may change it.
	status, body = http.StatusOK, `{"data":[{"id":"a"}]}`
	if a := h.Do("POST", "/integrations/i-failing/test", admintest.AdminKey, nil).OK(); a.At("success") != true || a.At("models") != 1.0 || a.Text("object") != "integration-test" {
		t.Errorf("an integration: %s", a.Body)
	}
	h.Do("POST", "/integrations/i-failing/test", key, nil).RequireFault(404, "AB08", "") // a workspace cannot read it either
	h.Do("POST", "/integrations/none/test", admintest.AdminKey, nil).RequireFault(404, "AB08", "")
	h.Do("POST", "/providers/none/test", key, nil).RequireFault(404, "AB08", "")
	h.Do("POST", at, admintest.MemberKey, nil).RequireFault(403, "AB03", "")
}

// Each of several credentials is tested. One that is rejected while another is accepted is left
// out; an accepted one is used again; other outcomes change nothing.
func TestEachCredentialIsTested(t *testing.T) {
	h := newInstallation(t)
	answers := map[string]int{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answers[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer sk-of-")])
		_, _ = w.Write([]byte(`{"data":[{"id":"a"}]}`))
	}))
	defer up.Close()
	labels := []string{"a", "b", "c"}
	var list []provider.StoredCredential
	for _, l := range labels {
		list = append(list, provider.StoredCredential{ID: "id-" + l, Label: l, Weight: 1})
	}
	slug := probed(t, h, "several", "openai", up.URL+"/v1")
	var sc store.Scope
	var id string
	own := store.Scope{Org: admintest.Org}
	if err := h.Resources.Change(context.Background(), own, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(own, provider.KindIntegration, "several")
		if err != nil {
			return err
		}
		sc, id = rec.Scope, rec.ID
		form, err := provider.DecodeIntegration(rec)
		if err != nil {
			return err
		}
		form.Credentials = list
		if rec.Body, err = encode(form); err != nil {
			return err
		}
		for i := range list {
			if err := rec.SetSecret(context.Background(), admintest.Sealer{}, list[i].Secret(), []byte("sk-of-"+list[i].Label)); err != nil {
				return err
			}
		}
		return tx.Update(&rec)
	}); err != nil {
		t.Fatal(err)
	}
	table := h.Resources.Store().Table(store.Usage)
	if err := rotation.Tested(context.Background(), table, sc, id, "id-c", true, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		a, b, c int
		cause   any
		refused string // afterwards
		states  [3]any
	}{
		{503, 429, 403, "provider", "c", [3]any{nil, nil, nil}},
		{401, 401, 401, "credentials", "c", [3]any{nil, nil, nil}},
		{200, 401, 200, "credentials", "b", [3]any{false, true, false}},
		{200, 503, 401, "provider", "b c", [3]any{false, nil, true}},
		{200, 200, 200, nil, "", [3]any{false, false, false}},
	} {
		answers = map[string]int{"a": step.a, "b": step.b, "c": step.c}
		a := h.Do("POST", "/providers/"+slug+"/test", key, nil).OK()
		if a.At("cause") != step.cause || a.At("success") != (step.cause == nil) {
			t.Errorf("%+v: %s", step, a.Body)
		}
		for i, each := range a.At("credentials").([]any) {
			one := each.(map[string]any)
			if one["label"] != labels[i] || one["refused"] != step.states[i] || one["status_code"] != float64([]int{step.a, step.b, step.c}[i]) {
				t.Errorf("%+v: %v", step, one)
			}
		}
		if strings.Contains(string(a.Body), "sk-of") {
			t.Errorf("the response holds a key: %s", a.Body)
		}
		got, err := rotation.Refusals(context.Background(), table, sc, id, list)
		if err != nil {
			t.Fatal(err)
		}
		var refused []string
		for _, l := range labels {
			if _, ok := got[l]; ok {
				refused = append(refused, l)
			}
		}
		if strings.Join(refused, " ") != step.refused {
			t.Errorf("%+v: refused %q", step, refused)
		}
	}
}
