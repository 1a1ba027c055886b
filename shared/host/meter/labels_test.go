package meter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/host/meter"
	"gateway/shared/usage"
)

// TestFurtherLabelsAreBounded: labels that the operator selects are written, and values that
// callers can invent are limited individually.
func TestFurtherLabelsAreBounded(t *testing.T) {
	t.Setenv(meter.EnvLabels, " model,config_name,api_key_id,api_key_name,metadata_team-a,metadata_,unknown,model")
	totals := meter.NewTotals()
	sink := totals.Sink(&countingSink{})
	emit := func(change func(r *usage.Record)) {
		t.Helper()
		r := requestRecord("openai", "gpt-4.1", 200, time.Second, true)
		change(r)
		if err := sink.Emit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	emit(func(r *usage.Record) {
		r.ConfigSlug, r.KeyID, r.KeyName, r.Metadata = "main", "key-1", "Équipe A", map[string]string{"team-a": `re"d`}
	})
	emit(func(*usage.Record) {})
	for i := range 400 {
		emit(func(r *usage.Record) { r.Metadata = map[string]string{"team-a": fmt.Sprint("invented", i)} })
	}
	emit(func(r *usage.Record) { r.ConfigSlug = "later" })
	emit(func(r *usage.Record) { r.Metadata = map[string]string{"team-a": "with\na line"} })
	emit(func(r *usage.Record) { r.KeyName = "\xff\x00" })
	text := metricsOf(t, totals)
	for _, want := range []string{
		`,model="gpt-4.1",config_name="N/A",api_key_id="N/A",api_key_name="other",metadata_team_a="N/A"} 1`,
		`,model="gpt-4.1",config_name="main",api_key_id="key-1",api_key_name="Équipe A",metadata_team_a="re\"d"} 1`,
		`,model="gpt-4.1",config_name="N/A",api_key_id="N/A",api_key_name="N/A",metadata_team_a="N/A"} 1`,
		`,model="gpt-4.1",config_name="N/A",api_key_id="N/A",api_key_name="N/A",metadata_team_a="invented0"} 1`,
		`,model="gpt-4.1",config_name="N/A",api_key_id="N/A",api_key_name="N/A",metadata_team_a="other"} 302`,
		`,model="gpt-4.1",config_name="later",api_key_id="N/A",api_key_name="N/A",metadata_team_a="N/A"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if n := strings.Count(text, "\nrequest_count{"); n != 104 {
		t.Errorf("%d series", n)
	}
	if strings.Contains(text, "unknown=") || strings.Contains(text, "a line") {
		t.Error("a label that was not asked for, or a value that is no name")
	}
}
