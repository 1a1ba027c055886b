package integrations

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/admin/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|20\d\d-\d\d-\d\dT[0-9:.]+Z`)

// golden holds the answers against a file, with ids and times by their form.
func golden(t *testing.T, file string, calls []call) {
	t.Helper()
	var out bytes.Buffer
	for _, c := range calls {
		fmt.Fprintf(&out, "%s %s\n", c.method, c.path)
		var body any
		if c.body != "" {
			body = c.body
		}
		got := changing.ReplaceAllStringFunc(string(c.h.Do(c.method, c.path, c.as, body).OK().Body), func(s string) string {
			if strings.HasPrefix(s, "20") && strings.HasSuffix(s, "Z") {
				return "TIME"
			}
			return "ID"
		})
		if err := json.Indent(&out, []byte(got), "", "  "); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n\n")
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("the answers changed (-want +got):\n%s", diff)
	}
}

// call is one request and who makes it.
type call struct {
	h                      *admintest.House
	as, method, path, body string
}

func TestAnswersKeepTheirShape(t *testing.T) {
	h := newHouse(t)
	golden(t, "answers.txt", []call{
		{h, chief, "POST", "/integrations", `{"name":"Shared","ai_provider_id":"bedrock","description":"d","tags":{"team":"a"},"pricing_adjustments":{"multiplier":{"default":0.9}},
			"configurations":{"aws_auth_type":"accessKey","aws_region":"eu-west-1","aws_access_key_id":"AKID","aws_secret_access_key":"CANARY-0123456789","custom_headers":{"X-Team":"CANARY-0123456789"}}}`},
		{h, chief, "PUT", "/integrations/shared/workspaces", `{"workspaces":[{"id":"` + admintest.OneSlug + `","enabled":true,"usage_limits":[{"credit_limit":5,"alert_threshold":4}],"rate_limits":[{"type":"requests","unit":"rpm","value":9}]}],"global_workspace_access":{"enabled":false,"usage_limits":[{"type":"tokens","credit_limit":1000}]}}`},
		{h, chief, "GET", "/integrations/shared", ""},
		{h, chief, "GET", "/integrations", ""},
		{h, chief, "GET", "/integrations/shared/workspaces", ""},
		{h, key, "POST", "/integrations", `{"name":"Own","ai_provider_id":"ollama","configurations":{"custom_host":"https://models.example.com/v1"}}`},
		{h, key, "PUT", "/integrations/own/models", `{"allow_all_models":false,"models":[{"slug":"mine","enabled":true,"pricing_config":{"pay_as_you_go":{"request_token":{"price":0.1}}}}]}`},
		{h, key, "GET", "/integrations/own/models", ""},
		{h, key, "GET", "/integrations/own", ""},
		{h, key, "DELETE", "/integrations/own", ""},
	})
}
