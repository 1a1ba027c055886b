package analytics

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"gateway/shared/admin/admintest"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/feedback"
)

func TestGraphsOfFeedbackEqualTheSumOverIt(t *testing.T) {
	h, a := newHouse(t)
	var all []usage.Record
	for i := range 6 {
		r := made(admintest.Org, h.One, admintest.OneSlug, i)
		r.TraceID = string(rune('a' + i))
		all = append(all, r)
	}
	newest := all[0] // of the trace of another model
	newest.TraceID, newest.ID, newest.Start = "b", made(admintest.Org, h.One, admintest.OneSlug, 0).ID, noon.Add(time.Second)
	if err := a.Ingest(context.Background(), slices.Clone(append(all, newest))); err != nil {
		t.Fatal(err)
	}
	rated := feedback.New(h.Resources.Store(), func() time.Time { return noon }, 0)
	give := func(workspace string, list ...feedback.Feedback) {
		t.Helper()
		for i := range list {
			list[i].ID, list[i].Created = workspace+string(rune('0'+i)), noon.Add(-time.Duration(i)*10*time.Minute)
		}
		if err := rated.Add(context.Background(), store.Scope{Org: admintest.Org, Workspace: workspace}, list); err != nil {
			t.Fatal(err)
		}
	}
	give(h.One, feedback.Feedback{Trace: "a", Value: 10, Weight: 1}, feedback.Feedback{Trace: "b", Value: -5, Weight: 0.5}, feedback.Feedback{Trace: "b", Value: 10, Weight: 0.25}, feedback.Feedback{Trace: "unknown", Value: 4, Weight: 1})
	give(h.Two, feedback.Feedback{Trace: "a", Value: -10, Weight: 1})
	ask := func(graph, query, key string) admintest.Answer {
		t.Helper()
		return h.Do("GET", "/analytics/graphs/"+graph+"?"+query, key, nil).OK()
	}
	is := func(what string, got, want any) {
		t.Helper()
		if g, w := asJSON(t, got), asJSON(t, want); g != w {
			t.Errorf("%s: %s, want %s", what, g, w)
		}
	}
	for _, query := range []string{day, hour} {
		got := ask("feedbacks", query, admintest.WorkspaceA)
		is("total", got.At("summary", "total"), 4)
		is("points", sum(got, "total"), 4)
		is("mean", ask("feedbacks/weighted", query, admintest.WorkspaceA).At("summary", "avg"), (10-2.5+2.5+4)/4)
		is("scores", ask("feedbacks/scores", query, admintest.WorkspaceA).At("data_points"), []map[string]int{{"score": -5, "total": 1}, {"score": 4, "total": 1}, {"score": 10, "total": 2}})
		is("models", ask("feedbacks/ai-models", query, admintest.WorkspaceA).At("data_points"), []map[string]any{{"ai_model": "m0", "total": 3, "avg_weighted_feedback": 10.0 / 3}})
	}
	is("of requests that pass", ask("feedbacks", day+"&ai_org_model=openai__m0", admintest.WorkspaceA).At("summary", "total"), 3)
	is("of no request", ask("feedbacks", day+"&trace_id=none", admintest.WorkspaceA).At("summary", "total"), 0)
	is("of an older day", ask("feedbacks", "time_of_generation_min=2026-03-01&time_of_generation_max=2026-03-02", admintest.WorkspaceA).At("summary", "total"), 0)
	is("of another workspace", ask("feedbacks", day, admintest.WorkspaceB).At("summary", "total"), 1)
	is("of another organisation", ask("feedbacks", day, admintest.OtherAdmin).At("summary", "total"), 0)
	is("of the organisation", ask("feedbacks", day, admintest.AdminKey).At("summary", "total"), 5)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
