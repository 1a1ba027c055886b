package providers

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
	integrate(t, h, admintest.Org, h.One, "own")
	golden(t, "answers.txt", []call{
		{h, key, "POST", "/providers", `{"name":"Mine","slug":"mine","integration_id":"own","note":"n","tags":{"team":"a"},"usage_limits":{"credit_limit":5,"alert_threshold":4,"periodic_reset_days":7},"rate_limits":{"type":"requests","unit":"rpm","value":9},"expires_at":"2999-01-01T00:00:00Z"}`},
		{h, key, "GET", "/providers/mine?include_configurations=true", ""},
		{h, key, "PUT", "/providers/mine", `{"name":"New","reset_usage":true}`},
		{h, key, "GET", "/providers", ""},
		{h, key, "POST", "/virtual-keys", `{"name":"Azure","slug":"azure","provider":"azure-openai","key":"CANARY-0123456789","resourceName":"res","deploymentConfig":[{"apiVersion":"2024-10-21","deploymentName":"gpt","alias":"a","is_default":true}],
			"secret_mappings":[{"target_field":"model_config.azureAdToken","secret_reference_id":"vault"}]}`},
		{h, key, "GET", "/virtual-keys/azure", ""},
		{h, key, "PUT", "/virtual-keys/azure", `{"note":"n"}`},
		{h, key, "DELETE", "/virtual-keys/azure", ""},
		{h, key, "GET", "/virtual-keys", ""},
	})
}
