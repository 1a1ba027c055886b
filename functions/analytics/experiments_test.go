package analytics

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/prompt"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
)

const trial = "6f1c0d9e-2f0b-4f57-8c0a-3a4f0e8a0001"

// storeExperiment stores the prompt p with an experiment over its versions 1 and 2, which began an
// hour before noon.
func storeExperiment(t *testing.T, h *admintest.Installation) {
	t.Helper()
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	body := fmt.Sprintf(`{"variants":[{"version":1,"weight":60},{"version":2,"weight":40}],"started_at":%q}`, noon.Add(-time.Hour).Format(time.RFC3339))
	for _, rec := range []resource.Record{
		{Scope: sc, Kind: prompt.KindPrompt, ID: "p", Slug: "pp-p", Name: "p", Status: "active", Body: []byte(`{}`)},
		{Scope: sc, Kind: prompt.KindExperiment.Of("p"), ID: trial, Name: "e", Status: prompt.Running, Body: []byte(body)},
	} {
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { one := rec; return tx.Create(&one) }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVersionsOfAnExperimentAreCompared(t *testing.T) {
	t.Parallel()
	h, archive := newInstallation(t)
	storeExperiment(t, h)
	var all []usage.Record
	record := func(i int, version int64, status int, cost int64) *usage.Record {
		r := made(admintest.Org, h.One, admintest.OneSlug, i)
		r.SetPrompt("p", version, trial)
		r.PromptSlug, r.ClientStatus, r.Cost, r.Duration = "pp-p", status, pricing.NanoDollars(cost*10_000_000), time.Duration(cost)*time.Second
		r.TraceID = fmt.Sprintf("trace-%d", i)
		all = append(all, r)
		return &all[len(all)-1]
	}
	for i, status := range []int{200, 200, 500, 446, 246, 200} {
		record(i, 1, status, int64(1+i%2))
	}
	for i := range 4 {
		record(10+i, 2, 200, 3)
	}
	all[7].TraceID = "trace-10" // of the same conversation: its feedback counts once
	record(20, 2, 200, 9).SetPrompt("p", 2, "another")
	record(21, 1, 200, 9).Endpoint = "promptRender"
	record(22, 1, 200, 9).Start = noon.Add(-2 * time.Hour)
	if err := archive.Ingest(context.Background(), all); err != nil {
		t.Fatal(err)
	}
	rated := feedback.New(h.Resources.Store(), func() time.Time { return noon }, 0, nil)
	if err := rated.Add(context.Background(), store.Scope{Org: admintest.Org, Workspace: h.One}, []feedback.Feedback{
		{ID: "a", Trace: "trace-0", Value: 4, Weight: 0.5}, {ID: "b", Trace: "trace-10", Value: 10, Weight: 1}, {ID: "c", Trace: "trace-10", Value: 6, Weight: 1}, {ID: "d", Trace: "elsewhere", Value: 1, Weight: 1},
	}); err != nil {
		t.Fatal(err)
	}
	const at = "/prompts/pp-p/experiments/" + trial + "/results"
	got := h.Do("GET", at, admintest.WorkspaceA, nil).OK()
	for path, want := range map[string]any{
		"status": "running", "methods/rates": "Wilson score", "feedback_is_partial": false,
		"variants/0/requests": 6.0, "variants/0/share": 60.0, "variants/0/weight": 60.0, "variants/0/total_cost": 9.0, "variants/0/feedback_count": 1.0, "variants/0/versus_first": nil,
		"variants/0/measures/error_rate/value": 100.0 / 6, "variants/0/measures/denied_rate/value": 100.0 / 6, "variants/0/measures/failed_check_rate/value": 100.0 / 6,
		"variants/0/measures/cost/value": 1.5, "variants/0/measures/latency/value": 1500.0, "variants/0/measures/feedback/value": 2.0, "variants/0/measures/input_tokens/value": 10.0,
		"variants/1/prompt_version": 2.0, "variants/1/requests": 4.0, "variants/1/measures/error_rate/value": 0.0, "variants/1/measures/error_rate/low": 0.0,
		"variants/1/measures/cost/value": 3.0, "variants/1/measures/cost/low": 3.0, "variants/1/feedback_count": 2.0, "variants/1/measures/feedback/value": 8.0,
		"variants/1/versus_first/cost/value": 1.5, "variants/1/versus_first/error_rate/value": -100.0 / 6,
	} {
		value := got.At(strings.Split(path, "/")...)
		a, is := value.(float64)
		b, number := want.(float64)
		if is != number || is && math.Abs(a-b) > 1e-9 || !is && value != want {
			t.Errorf("%s is %v, want %v", path, value, want)
		}
	}
	if got.At("variants", "0", "measures", "feedback", "low") != nil {
		t.Errorf("one rating has an interval: %s", got.Body)
	}
	missing := strings.Replace(at, "pp-p", "pp-nobody", 1)
	h.Do("GET", missing, admintest.WorkspaceA, nil).RequireFault(404, "AB08", "promptId")
	h.Do("GET", strings.Replace(at, trial, "6f1c0d9e-0000-4000-8000-000000000000", 1), admintest.WorkspaceA, nil).RequireFault(404, "AB08", "experimentId")
	if a, b := h.Do("GET", at, admintest.WorkspaceB, nil), h.Do("GET", missing, admintest.WorkspaceB, nil); a.Comparable() != b.Comparable() {
		t.Errorf("another workspace's experiment is told from a missing one: %s, %s", a.Body, b.Body)
	}
}

// The figures of rates are those of Newcombe's papers of 1998; those of means are
// computed by hand.
func TestIntervals(t *testing.T) {
	t.Parallel()
	is := func(name string, got Estimate, low, high float64) {
		t.Helper()
		if got.Low == nil || math.Abs(*got.Low-low) > 0.006 || math.Abs(*got.High-high) > 0.006 {
			t.Errorf("%s: %v to %v, want %v to %v", name, *got.Low, *got.High, low, high)
		}
	}
	is("81 of 263", rate(81, 263), 25.53, 36.62)
	is("15 of 148", rate(15, 148), 6.24, 16.05)
	is("0 of 20", rate(0, 20), 0, 16.11)
	is("1 of 29", rate(1, 29), 0.61, 17.18)
	is("56 of 70 and 48 of 80", rateDifference(56, 70, 48, 80), 5.24, 33.39)
	is("9 of 10 and 3 of 10", rateDifference(9, 10, 3, 10), 17.05, 80.90)
	is("0 of 10 and 0 of 20", rateDifference(0, 10, 0, 20), -16.11, 27.75)
	var a, b report.Sample
	for _, v := range []float64{1, 2, 3, 4} { // variance 5/3
		a.Add(v)
	}
	for _, v := range []float64{4, 6} { // variance 2
		b.Add(v)
	}
	is("mean", mean(a, 10), 25-19.6*math.Sqrt(5.0/12), 25+19.6*math.Sqrt(5.0/12))
	is("difference of means", meanDifference(b, a, 1), 2.5-1.96*math.Sqrt(5.0/12+1), 2.5+1.96*math.Sqrt(5.0/12+1))
	if e := rate(0, 0); e.Low != nil || mean(report.Sample{N: 1, Sum: 1}, 1).Low != nil {
		t.Error("nothing has an interval")
	}
}
