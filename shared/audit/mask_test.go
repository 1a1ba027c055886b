package audit

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// canary is put where a secret may stand; it must not come out.
const canary = "CANARY-7f3a9b-value"

func TestSecretsAreMaskedEverywhere(t *testing.T) {
	for _, body := range []string{
		`{"key":"` + canary + `"}`,
		`{"apiKey":"` + canary + `"}`,
		`{"a":{"b":[{"aws_secret_access_key":"` + canary + `"}]}}`,
		`{"awsSecretAccessKey":"` + canary + `"}`,
		`{"client_secret":"` + canary + `","x":1}`,
		`{"configurations":{"azure_entra_client_secret":"` + canary + `"}}`,
		`{"vertex_service_account_json":{"anything":"` + canary + `"}}`,
		`{"auth_config":{"vault_addr":"` + canary + `","deep":{"er":["` + canary + `"]}}}`,
		`{"custom_headers":{"X-Vendor":"` + canary + `"}}`,
		`{"Authorization":"` + canary + `"}`,
		`{"scim":{"password":"` + canary + `"}}`,
		`{"tokens":["` + canary + `"]}`,
		`{"key":["` + canary + `",{"x":"` + canary + `"}]}`,
		`{"note":"use sk-` + canary + canary + `"}`,
		`{"note":"Bearer ` + canary + canary + `"}`,
		`{"url":"https://user:` + canary + `@host/path"}`,
		`{"jwtToken":"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ` + canary + `.abc"}`,
		`{"key":"` + canary + `","key":"` + canary + `2"}`,
		`{"key":"` + canary + `"`,
		`not json ` + canary,
		`[{"secret":"` + canary + `"}]`,
		`{"sk-` + canary + canary + `":1}`,
	} {
		got := MaskBody([]byte(body))
		if strings.Contains(got, canary) {
			t.Errorf("%s\n  left the secret in %s", body, got)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s\n  gave what is not JSON: %s", body, got)
		}
	}
}

func TestWhatIsNoSecretStaysReadable(t *testing.T) {
	in := `{"aws_region":"us-east-1","aws_role_arn":"arn:aws:iam::1:role/r","max_tokens":100,"name":"a \u003cb\u003e","secret_path":"prod/openai","type":"tokens","unit":"rpm","url":"https://host/path?x=1"}`
	want := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(in)
	if got := MaskBody([]byte(in)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := MaskBody(nil); got != "{}" {
		t.Errorf("empty body: %s", got)
	}
	if got := MaskBody([]byte(`{"key":"abcdefghij"}`)); got != `{"key":"ab****ij"}` {
		t.Errorf("mask form: %s", got)
	}
	if got := MaskBody([]byte(`{"key":"short"}`)); got != `{"key":"****"}` {
		t.Errorf("a short secret: %s", got)
	}
}

func TestHeadersAndQueryAreMasked(t *testing.T) {
	h := http.Header{
		"X-Gateway-Api-Key": {canary}, "Authorization": {"Bearer " + canary}, "Cookie": {"s=" + canary},
		"X-Vendor-Token": {canary, canary}, "User-Agent": {"curl/8"}, "X-Note": {"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ" + canary + ".abc"},
	}
	got := MaskHeaders(h)
	if strings.Contains(got, canary) || !strings.Contains(got, `"user-agent":"curl/8"`) || !json.Valid([]byte(got)) {
		t.Errorf("headers: %s", got)
	}
	got = MaskQuery(url.Values{"workspace_id": {"ws-1"}, "token": {canary}})
	if strings.Contains(got, canary) || !strings.Contains(got, `"workspace_id":"ws-1"`) {
		t.Errorf("query: %s", got)
	}
}

func TestLargeBodyIsCutAndStaysJSON(t *testing.T) {
	got := MaskBody([]byte(`{"text":"` + strings.Repeat("é\\\"", 100_000) + `"}`))
	if len(got) > 2*maxBody || !json.Valid([]byte(got)) || !strings.Contains(got, `"_truncated":true`) {
		t.Errorf("%d bytes: %.80s", len(got), got)
	}
}

func FuzzMaskBody(f *testing.F) {
	f.Add([]byte(`{"a":{"key":"CANARY"}}`))
	f.Add([]byte(`[[[`))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := MaskBody(body); !json.Valid([]byte(got)) {
			t.Errorf("%q gave %q", body, got)
		}
	})
}
