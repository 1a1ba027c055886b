package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/usage"
)

// saveCredentials saves an integration at the mock provider with several credentials.
func (r *running) saveCredentials(slug, credentials string) {
	r.t.Helper()
	r.save(slug, fmt.Sprintf(`"ai_provider_id":"openai","credentials":[%s],"configurations":{"custom_host":%q}`, credentials, r.mockBase()))
}

// attemptsOf are the calls of a record as credential:status.
func attemptsOf(rec *usage.Record) string {
	var out []string
	for i := range rec.Attempts {
		out = append(out, fmt.Sprintf("%s:%d", rec.Attempts[i].Credential, rec.Attempts[i].Status))
	}
	return strings.Join(out, " ")
}

// Keys that the mock provider rejects with 401, limits with 429, and accepts. None of them may
// be seen anywhere.
const (
	refusedKey = "CANARY-refused-key"
	otherKey   = "CANARY-other-refused-key"
	limitedKey = "mock-limited"
	goodKey    = "mock-CANARY-good-key"
)

func TestCredentialsRotate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		credentials   string
		first, second string // attempts of two requests
		status        [2]int
	}{
		"401":       {`{"label":"old","key":"` + refusedKey + `"},{"label":"new","key":"` + goodKey + `","weight":0}`, "old:401 new:200", "new:200", [2]int{200, 200}},
		"429":       {`{"label":"busy","key":"` + limitedKey + `"},{"label":"free","key":"` + goodKey + `","weight":0}`, "busy:429 free:200", "", [2]int{200, 200}},
		"all out":   {`{"label":"a","key":"` + refusedKey + `"},{"label":"b","key":"` + otherKey + `","weight":0}`, "a:401 b:401", "a:401 b:401", [2]int{401, 401}},
		"no errors": {`{"label":"only","key":"` + goodKey + `"}`, "only:200", "only:200", [2]int{200, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			r.saveCredentials("several", c.credentials)
			for n, want := range c.status {
				if got := r.call("POST", "/chat/completions", chatBody("@several/gpt-4o-mini", "Hello", "")); got.status != want || strings.Contains(got.body, "CANARY") {
					t.Fatalf("request %d: %d %s", n, got.status, got.body)
				}
			}
			records := r.records(2)
			if got := attemptsOf(&records[0]); got != c.first {
				t.Errorf("first request: %s", got)
			}
			if got := attemptsOf(&records[1]); got != c.second && name != "429" { // it may have rested long enough
				t.Errorf("second request: %s", got)
			}
			calls := strings.Count(attemptsOf(&records[0])+" "+attemptsOf(&records[1]), ":")
			if got := len(r.mock.Requests(100)); got != calls {
				t.Errorf("the provider got %d calls, the records have %d", got, calls)
			}
			r.showsNoKey(records)
		})
	}
}

// showsNoKey checks that logs, explanations, resources and the audit log show no key.
func (r *running) showsNoKey(records []usage.Record) {
	r.t.Helper()
	for _, rec := range records {
		for _, path := range []string{"/logs/" + rec.ID, "/logs/" + rec.ID + "/explain"} {
			got := r.call("GET", path, "")
			if got.status != 200 || strings.Contains(got.body, "CANARY") || len(rec.Attempts) > 0 && !strings.Contains(got.body, rec.Attempts[0].Credential) {
				r.t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	}
	for _, path := range []string{"/integrations/several", "/providers/several?include_configurations=true", "/audit-logs?start_time=2020-01-01T00:00:00Z&end_time=2099-01-01T00:00:00Z"} {
		if got := r.call("GET", path+amp(path)+"workspace_id="+r.workspace(), "", "X-Gateway-Api-Key", adminKey); got.status != 200 || strings.Contains(got.body, "CANARY") {
			r.t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func amp(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

// Every family rotates: streams, other shapes and operations, pass-through.
func TestCredentialsRotateOnEveryRoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, body string }{
		{"/chat/completions", chatBody("@several/gpt-4o-mini", "Hello", `,"stream":true`)},
		{"/messages", `{"model":"@several/gpt-4o-mini","max_tokens":20,"messages":[{"role":"user","content":"Hello"}]}`},
		{"/messages", `{"model":"@several/gpt-4o-mini","max_tokens":20,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`},
		{"/embeddings", `{"model":"@several/text-embedding-3-small","input":"Hello"}`},
		{"/responses", `{"model":"@several/gpt-4o-mini","input":"Hello"}`},
		{"/proxy/chat/completions", chatBody("@several/gpt-4o-mini", "Hello", "")},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			r.saveCredentials("several", `{"label":"old","key":"`+refusedKey+`"},{"label":"new","key":"`+goodKey+`","weight":0}`)
			if got := r.call("POST", c.path, c.body); got.status != 200 || strings.Contains(got.body, "CANARY") {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if got := attemptsOf(&r.records(1)[0]); got != "old:401 new:200" {
				t.Errorf("%s", got)
			}
		})
	}
}

// A caller who makes the provider answer 401 to every credential, here by a path that needs
// another kind of key, leaves none of them out for others.
func TestRefusalsThatACallerCausesLeaveNoCredentialOut(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(req.URL.Path, "/organization/") || req.Header.Get("Openai-Organization") == "org-of-nobody" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"needs another key","code":"invalid_api_key"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(up.Close)
	r := start(t)
	r.save("several", fmt.Sprintf(`"ai_provider_id":"openai","credentials":[{"key":"sk-first-key-0001"},{"key":"sk-second-key-0001"}],"configurations":{"custom_host":%q}`, up.URL+"/v1"))
	for what, cause := range map[string]func() reply{
		"a path": func() reply {
			return r.call("GET", "/proxy/organization/costs", "", "X-Gateway-Provider", "@several")
		},
		"a header": func() reply {
			return r.call("POST", "/chat/completions", chatBody("@several/gpt-4o-mini", "Hello", ""), "X-Gateway-Forward-Headers", "openai-organization", "Openai-Organization", "org-of-nobody")
		},
	} {
		if got := cause(); got.status != 401 {
			t.Logf("%s: %d %s", what, got.status, got.body)
		}
	}
	if calls.Load() < 2 {
		t.Fatalf("%d calls: nothing was refused", calls.Load())
	}
	for range 4 {
		if got := r.call("POST", "/chat/completions", chatBody("@several/gpt-4o-mini", "Hello", "")); got.status != 200 {
			t.Fatalf("afterwards: %d %s", got.status, got.body)
		}
	}
}

// A fallback takes over when all credentials are out; a new key is used at once; the same
// integration name in another workspace is not affected.
func TestRefusedCredentialsAreReplaced(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.saveCredentials("several", `{"label":"a","key":"`+refusedKey+`"},{"label":"b","key":"`+otherKey+`"}`)
	ws := r.admin("POST", "/workspaces", `{"name":"Other"}`)["id"]
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"several","slug":"several","workspace_id":%q,"ai_provider_id":"openai","credentials":[{"label":"a","key":"mock-others"}],"configurations":{"custom_host":%q}}`, ws, r.mockBase()))
	others := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, ws))["key"].(string)
	healthOf := func(key string) string {
		t.Helper()
		for _, one := range r.get("/providers/health", key)["data"].([]any) {
			if p := one.(map[string]any); p["slug"] == "several" {
				out := fmt.Sprint(p["status"])
				for _, c := range p["credentials"].([]any) {
					out += fmt.Sprint(" ", c.(map[string]any)["label"], ":", c.(map[string]any)["status"])
				}
				return out
			}
		}
		return "absent"
	}
	viewer := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"v","workspace_id":%q,"scopes":["providers.list"]}`, r.workspace()))["key"].(string)
	stranger := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"v","workspace_id":%q,"scopes":["providers.list"]}`, ws))["key"].(string)
	config := `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@several"},{"provider":"@mock"}]}`
	for n := range 3 { // each calls both: three failures in a row are unhealthy
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", config)
		if got.status != 200 || got.header.Get("X-Gateway-Last-Used-Option-Index") != "config.targets[1]" {
			t.Fatalf("request %d: %d %s", n, got.status, got.body)
		}
	}
	if got := r.call("POST", "/chat/completions", chatBody("@several/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", others); got.status != 200 {
		t.Errorf("another workspace: %d %s", got.status, got.body)
	}
	eventually(t, func() error { // judged by the records of the calls
		if got := healthOf(viewer); got != "unhealthy a:unhealthy b:unhealthy" {
			return fmt.Errorf("health %s", got)
		}
		return nil
	})
	if got := healthOf(stranger); strings.Contains(got, "unhealthy") || strings.Contains(got, "b:") {
		t.Errorf("another workspace sees %s", got)
	}
	body, _ := json.Marshal(map[string]any{"path": "/chat/completions", "body": json.RawMessage(chatBody("@several/gpt-4o-mini", "Hello", "")), "config": json.RawMessage(`{}`)})
	r.admin("PUT", "/integrations/several?workspace_id="+r.workspace(), `{"credentials":[{"label":"a"},{"label":"b","key":"`+goodKey+`"}]}`)
	for n := range 4 {
		if got := r.call("POST", "/chat/completions", chatBody("@several/gpt-4o-mini", "Hello", "")); got.status != 200 {
			t.Fatalf("request %d with a new key: %d %s", n, got.status, got.body)
		}
	}
	eventually(t, func() error {
		if got := healthOf(viewer); !strings.Contains(got, "a:unhealthy b:") || strings.Contains(got, "b:unhealthy") {
			return fmt.Errorf("health with a new key: %s", got)
		}
		return nil
	})
	dry := r.call("POST", "/configs/dry-run", string(body))
	if !strings.Contains(dry.body, `"credential":"b"`) || strings.Contains(dry.body, "CANARY") {
		t.Errorf("%s", dry.body)
	}
}

// What one credential of an integration makes, the others can read: the integration shares an
// account with whoever has saved any of its credentials.
//
//lane:exhaustive
func TestOneOfSeveralCredentialsSavedTwiceIsIsolated(t *testing.T) {
	t.Parallel()
	n := neighbours{running: start(t)}
	for i, key := range []*string{&n.mine, &n.theirs} {
		ws := n.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbour %d"}`, i))
		credential := []string{`"credentials":[{"key":"mock-first"},{"key":"mock-common"}]`, `"key":"mock-common"`}[i]
		n.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"vk","slug":"common","provider":"openai",%s,"workspace_id":%q,"customHost":%q}`, credential, ws["id"], n.mockBase()))
		*key = n.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, ws["id"]))["key"].(string)
	}
	n.met()
	othersAreMissing(t, n)
}
