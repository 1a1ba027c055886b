package ledger

import (
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compile(t *testing.T, s map[string]any) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:limits", doc); err != nil {
		t.Fatal(err)
	}
	out, err := c.Compile("mem:limits")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The document says what the parser takes: texts that differ in one way from a
// good one are good or bad to both.
func TestSchemasAgreeWithTheParser(t *testing.T) {
	usages := []string{
		`null`, `[]`, `{}`, `"x"`, `5`, `[null]`, `{"credit_limit":1}`, `[{"credit_limit":1}]`, `{"credit_limit":0.5}`, `{"credit_limit":0}`, `{"credit_limit":-0.5}`, `{"type":"cost","credit_limit":0.05,"alert_threshold":0.02}`, `{"type":"tokens","credit_limit":2000}`, `{"credit_limit":2,"current_usage":1,"reserved_usage":0,"available":1,"status":"active","last_reset_at":null,"is_threshold_alerts_sent":false,"is_exhausted_alerts_sent":true}`,
		`{"credit_limit":"1"}`, `{"credit_limit":null}`,
		`{"credit_limit":2,"type":"cost"}`, `{"credit_limit":200,"type":"tokens"}`, `{"credit_limit":2,"type":"requests"}`, `{"credit_limit":2,"type":null}`, `{"credit_limit":2,"type":""}`,
		`{"credit_limit":2,"alert_threshold":1}`, `{"credit_limit":2,"alert_threshold":0}`, `{"credit_limit":2,"alert_threshold":null}`, `{"credit_limit":2,"alert_threshold":"1"}`,
		`{"credit_limit":2,"periodic_reset":"weekly"}`, `{"credit_limit":2,"periodic_reset":"daily"}`, `{"credit_limit":2,"periodic_reset":null,"periodic_reset_days":365}`,
		`{"credit_limit":2,"periodic_reset_days":0}`, `{"credit_limit":2,"periodic_reset_days":366}`, `{"credit_limit":2,"periodic_reset_days":1.5}`, `{"credit_limit":2,"next_usage_reset_at":null}`,
		`{"credit_limit":2,"next_usage_reset_at":"2030-01-31T00:00:00Z"}`, `{"credit_limit":2,"next_usage_reset_at":7}`, `{"credit_limit":2,"colour":"red"}`,
		`[{"credit_limit":1},{"credit_limit":200,"type":"tokens"}]`, `[{"credit_limit":1},{"credit_limit":200,"type":"tokens"},{"credit_limit":2}]`,
	}
	rates := []string{
		`null`, `[]`, `{}`, `"x"`, `[[]]`, `{"type":"requests","unit":"rpm","value":1}`, `[{"type":"requests","unit":"rpm","value":1}]`, `[{"type":"tokens","unit":"rpw","value":0}]`,
		`[{"type":"requests","unit":"rps","value":1}]`, `[{"type":"requests","unit":"tpm","value":1}]`, `[{"type":"cost","unit":"rpm","value":1}]`, `[{"unit":"rpm","value":1}]`,
		`[{"type":"requests","value":1}]`, `[{"type":"requests","unit":"rpm"}]`, `[{"type":"requests","unit":"rpm","value":-1}]`, `[{"type":"requests","unit":"rpm","value":1.5}]`,
		`[{"type":"requests","unit":"rpm","value":"1"}]`, `[{"type":"requests","unit":"rpm","value":1000000000000000}]`, `[{"type":"requests","unit":"rpm","value":1000000000000001}]`,
		`[{"type":"requests","unit":"rpm","value":1,"per":"key"}]`, `[{"type":"requests","unit":"rpm","value":1},{"type":"requests","unit":"rph","value":1}]`,
	}
	for name, p := range map[string]LimitKind{"key": OnKey, "provider": OnProvider, "integration": OnIntegration, "workspace": OnWorkspace, "policy": OnPolicy} {
		usage, rate := compile(t, p.UsageSchema()), compile(t, p.RateSchema())
		for _, text := range usages {
			_, bad := p.UsageLimits([]byte(text), "")
			agree(t, name, text, usage, bad == nil)
		}
		for _, text := range rates {
			_, bad := p.RateLimits([]byte(text), "")
			agree(t, name, text, rate, bad == nil)
		}
	}
}

func agree(t *testing.T, place, text string, s *jsonschema.Schema, taken bool) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); (err == nil) != taken {
		t.Errorf("%s: %s: the parser takes it: %v, the schema says %v", place, text, taken, err)
	}
}
