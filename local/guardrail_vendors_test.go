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
	"time"

	"gateway/shared/testkit/managertest"
)

// vendor is a fake of a vendor of guardrails.
type vendor struct {
	*httptest.Server
	calls atomic.Int64
	down  atomic.Bool
}

// startVendor answers as answer says of the body, to the right key alone.
func startVendor(t *testing.T, path, header, key string, answer func(body map[string]any) string) *vendor {
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.calls.Add(1)
		var body map[string]any
		raw, _ := io.ReadAll(r.Body)
		switch {
		case v.down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Method != "POST" || r.URL.Path != path || r.Header.Get(header) != key || json.Unmarshal(raw, &body) != nil:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			_, _ = io.WriteString(w, answer(body))
		}
	}))
	t.Cleanup(v.Close)
	return v
}

// denier is Aporia, which blocks hunter2; masker is F5, which masks it.
func denier(t *testing.T) *vendor {
	return startVendor(t, "/proj/validate", "X-Aporia-Api-Key", "aporia-canary-key", func(body map[string]any) string {
		raw, _ := json.Marshal(body)
		if strings.Contains(string(raw), "hunter2") {
			return `{"action":"block"}`
		}
		return `{"action":"passthrough"}`
	})
}

func masker(t *testing.T) *vendor {
	return startVendor(t, "/backend/v1/scans", "Authorization", "Bearer f5-canary-key", func(body map[string]any) string {
		text, _ := body["input"].(string)
		if masked := strings.ReplaceAll(text, "hunter2", "*******"); masked != text {
			out, _ := json.Marshal(masked)
			return `{"result":{"outcome":"redacted"},"redactedInput":` + string(out) + `}`
		}
		return `{"result":{"outcome":"cleared"}}`
	})
}

// guardrail saves one and gives its slug.
func (r *running) guardrail(name, check, actions string) string {
	r.t.Helper()
	got := r.admin("POST", "/guardrails", fmt.Sprintf(`{"name":%q,"workspace_id":%q,"checks":[%s],"actions":{%s}}`, name, r.workspace(), check, actions))
	return got["slug"].(string)
}

// TestVendorsJudgeRequestsAndAnswers: two vendors, of which one denies and the other
// redacts, behind saved guardrails, before and behind answers, plain and in streams.
func TestVendorsJudgeRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	r := start(t)
	deny, mask := denier(t), masker(t)
	aporia := fmt.Sprintf(`{"id":"aporia.validateProject","parameters":{"projectID":"proj","credentials":{"apiKey":"aporia-canary-key","apiEndpoint":%q}}}`, deny.URL)
	f5 := fmt.Sprintf(`{"id":"f5-guardrails.scan","parameters":{"projectId":"p","redact":true,"credentials":{"apiKey":"f5-canary-key","calypsoUrl":%q}}}`, mask.URL)
	denies, masks := r.guardrail("denies", aporia, `"deny":true`), r.guardrail("masks", f5, `"deny":true`)
	holds, slides := r.guardrail("holds", aporia, `"deny":true,"stream":"hold"`), r.guardrail("slides", f5, `"stream":"window"`)
	long := strings.Repeat("one two three ", 60)
	for _, c := range []struct {
		name, config, text, stream string
		status                     int
		has, hasNot                string
	}{
		{"passes", `"input_guardrails":["` + denies + `","` + masks + `"]`, "my word", "", 200, `"findings":[]`, "hooks_failed"},
		{"denied before", `"input_guardrails":["` + denies + `"]`, "my hunter2", "", 446, `check aporia.validateProject.","type":"hooks_failed"`, "choices"},
		{"denied behind", `"output_guardrails":["` + denies + `"]`, "my hunter2", "", 446, `"after_request_hooks":[{"verdict":false`, `"usage"`},
		{"redacted before", `"input_guardrails":["` + masks + `"]`, "my hunter2", "", 200, `my *******`, "hunter2"},
		{"redacted behind", `"output_guardrails":["` + masks + `"]`, "my hunter2", "", 200, `my *******`, "hunter2"},
		{"stream, denied before", `"input_guardrails":["` + denies + `"]`, "my hunter2", `,"stream":true`, 446, `hooks_failed`, "data:"},
		{"stream, redacted before", `"input_guardrails":["` + masks + `"]`, "my hunter2", `,"stream":true`, 200, `*****`, "hunter2"},
		{"stream, held and denied", `"output_guardrails":["` + holds + `"]`, long + "hunter2", `,"stream":true`, 446, `hooks_failed`, "three"},
		{"stream, redacted in a window", `"output_guardrails":["` + slides + `"]`, long + "hunter2 " + long, `,"stream":true`, 200, `*****`, "hunter2"},
	} {
		path, body := echoRequest("chatComplete", c.text, c.stream)
		got := r.call("POST", path, body, "x-gateway-config", `{"passthrough":true,`+c.config+`}`, "x-gateway-strict-open-ai-compliance", "false")
		if got.status != c.status || !strings.Contains(got.body, c.has) || strings.Contains(got.body, c.hasNot) || strings.Contains(got.body, "canary") {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
	shown := r.call("GET", "/guardrails/"+denies, "", "X-Gateway-Api-Key", adminKey)
	if shown.status != 200 || strings.Contains(shown.body, "canary") || !strings.Contains(shown.body, `"projectID":"proj"`) {
		t.Errorf("%d %s", shown.status, shown.body)
	}
	before := deny.calls.Load()
	dry := r.dryRun(`{"config":{"input_guardrails":["` + denies + `"],"targets":[{"provider":"@mock"}]},"path":"/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"user","content":"hunter2"}]}}`)
	if raw, _ := json.Marshal(dry); !strings.Contains(string(raw), denies) || deny.calls.Load() != before {
		t.Errorf("%s, %d calls", raw, deny.calls.Load()-before)
	}
}

// TestAVendorThatIsDownIsNoDenial, unless the check says so; and it is not asked by
// every request.
func TestAVendorThatIsDownIsNoDenial(t *testing.T) {
	t.Parallel()
	r := start(t)
	deny := denier(t)
	deny.down.Store(true)
	check := func(more string) string {
		return fmt.Sprintf(`{"passthrough":true,"input_guardrails":[{"aporia.validateProject":{"projectID":"proj"%s},"credentials":{"apiKey":"aporia-canary-key","apiEndpoint":%q},"deny":true}]}`, more, deny.URL)
	}
	path, body := echoRequest("chatComplete", "my hunter2", "")
	for i := range 6 {
		name := "VendorError"
		if i >= 3 {
			name = "VendorDown"
		}
		if got := r.call("POST", path, body, "x-gateway-config", check("")); got.status != 200 || !strings.Contains(got.body, name) || strings.Contains(got.body, "canary") {
			t.Errorf("%d: %d %s", i, got.status, got.body)
		}
	}
	if n := deny.calls.Load(); n != 3 {
		t.Errorf("%d calls", n)
	}
	if got := r.call("POST", path, body, "x-gateway-config", check(`,"failOnError":true`)); got.status != 446 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestCredentialsOfGuardrailsInASecretManager: a vendor's key that a manager keeps is
// fetched when a request needs it, and never shown.
func TestCredentialsOfGuardrailsInASecretManager(t *testing.T) {
	t.Parallel()
	server := managertest.NewVault(t, time.Now)
	server.Tokens["hvs.of-the-gateway"] = time.Time{}
	server.Secrets["secret/data/f5"] = `{"api_key":"f5-canary-key"}`
	r := start(t)
	mask := masker(t)
	r.admin("POST", "/secret-references", fmt.Sprintf(`{"name":"Key","slug":"f5-key","manager_type":"hashicorp_vault","secret_path":"secret/data/f5","auth_config":{"vault_auth_type":"token","vault_addr":%q,"vault_token":"hvs.of-the-gateway"}}`, server.URL))
	check := fmt.Sprintf(`{"projectId":"p","redact":true,"credentials":{"calypsoUrl":%q},"secret_mappings":[{"target_field":"credentials.apiKey","secret_reference_id":"f5-key","secret_key":"api_key"}]}`, mask.URL)
	slug := r.guardrail("masks", `{"id":"f5-guardrails.scan","parameters":`+check+`}`, "")
	path, body := echoRequest("chatComplete", "my hunter2", "")
	for range 3 {
		if got := r.call("POST", path, body, "x-gateway-config", `{"passthrough":true,"input_guardrails":["`+slug+`"]}`); got.status != 200 || !strings.Contains(got.body, "my *******") || strings.Contains(got.body, "canary") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if n := server.Calls("read"); n != 1 {
		t.Errorf("%d reads", n)
	}
	calls := mask.calls.Load()
	if got := r.call("POST", path, body, "x-gateway-config", `{"passthrough":true,"input_guardrails":[{"f5-guardrails.scan":`+check+`}]}`); !strings.Contains(got.body, "CredentialsError") || mask.calls.Load() != calls {
		t.Errorf("a config that came with the request is sent the secret: %d %s", got.status, got.body)
	}
}
