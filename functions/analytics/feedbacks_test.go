package analytics

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/feedback"
)

func TestGraphsOfFeedbackEqualTheSumOverIt(t *testing.T) {
	h, a := newInstallation(t)
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
	rated := feedback.New(h.Resources.Store(), func() time.Time { return noon }, 0, nil)
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
	get := func(graph, query, key string) admintest.Response {
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
		got := get("feedbacks", query, admintest.WorkspaceA)
		is("total", got.At("summary", "total"), 4)
		is("points", sum(got, "total"), 4)
		is("mean", get("feedbacks/weighted", query, admintest.WorkspaceA).At("summary", "avg"), (10-2.5+2.5+4)/4)
		is("scores", get("feedbacks/scores", query, admintest.WorkspaceA).At("data_points"), []map[string]int{{"score": -5, "total": 1}, {"score": 4, "total": 1}, {"score": 10, "total": 2}})
		is("models", get("feedbacks/ai-models", query, admintest.WorkspaceA).At("data_points"), []map[string]any{{"ai_model": "m0", "total": 3, "avg_weighted_feedback": 10.0 / 3}})
	}
	is("of requests that pass", get("feedbacks", day+"&ai_org_model=openai__m0", admintest.WorkspaceA).At("summary", "total"), 3)
	is("of no request", get("feedbacks", day+"&trace_id=none", admintest.WorkspaceA).At("summary", "total"), 0)
	is("of an older day", get("feedbacks", "time_of_generation_min=2026-03-01&time_of_generation_max=2026-03-02", admintest.WorkspaceA).At("summary", "total"), 0)
	is("of another workspace", get("feedbacks", day, admintest.WorkspaceB).At("summary", "total"), 1)
	is("of another organisation", get("feedbacks", day, admintest.OtherAdmin).At("summary", "total"), 0)
	is("of the organisation", get("feedbacks", day, admintest.AdminKey).At("summary", "total"), 5)
	// Trace a has 10; trace b 0 in the mean, and two requests.
	for query, want := range map[string]int{"_min=-10": 3, "_min=0.001": 1, "_max=0": 2, "_min=0&weighted_feedback_max=0": 2, "_min=10": 1, "_max=-1": 0, "_max=0&trace_id=a": 0, "_min=0&trace_id=a,c": 1} {
		query = day + "&weighted_feedback" + query
		is("requests with"+query, get("requests", query, admintest.WorkspaceA).At("summary", "total"), want)
	}
	is("requests of another workspace", get("requests", day+"&weighted_feedback_min=-10", admintest.WorkspaceB).At("summary", "total"), 0)
	rows := func(key string) any {
		return h.Do("GET", "/analytics/groups/metadata/team?"+day+"&order_by=requests:asc", key, nil).OK().At("data")
	}
	got := map[string]any{}
	for _, row := range rows(admintest.WorkspaceA).([]any) {
		m := row.(map[string]any)
		got[m["metadata_value"].(string)] = []any{m["avg_weighted_feedback"], m["requests_with_feedback"]}
	}
	is("groups", got, map[string]any{"t0": []any{5, 2}, "t1": []any{0, 1}})
}

// The previous period is as long as the requested one, and each request is in one of them.
func TestGraphsReportThePreviousPeriod(t *testing.T) {
	h, a := newInstallation(t)
	fill(t, h, a)
	const period = "time_of_generation_min=2026-03-10T11:55:00Z&time_of_generation_max=2026-03-10T12:00:00Z&compare=previous"
	for _, name := range []string{"requests", "cost", "latency", "errors/rate", "cache/hit-rate", "users", "feedbacks"} {
		got := h.Do("GET", "/analytics/graphs/"+name+"?"+period, admintest.WorkspaceA, nil).OK()
		from, to := got.Text("previous", "time_of_generation_min"), got.Text("previous", "time_of_generation_max")
		alone := h.Do("GET", "/analytics/graphs/"+name+"?time_of_generation_min=2026-03-10T11:49:59.999999Z&time_of_generation_max=2026-03-10T11:54:59.999999Z", admintest.WorkspaceA, nil).OK()
		if !strings.HasPrefix(from, "2026-03-10T11:49:59.999") || !strings.HasPrefix(to, "2026-03-10T11:54:59.999") || asJSON(t, got.At("previous", "summary")) != asJSON(t, alone.At("summary")) || asJSON(t, got.At("previous", "data_points")) != asJSON(t, alone.At("data_points")) {
			t.Errorf("%s: %s, alone %s", name, got.Body, alone.Body)
		}
		if plain := h.Do("GET", "/analytics/graphs/"+name+"?"+strings.TrimSuffix(period, "&compare=previous"), admintest.WorkspaceA, nil).OK(); strings.Contains(string(plain.Body), "previous") || asJSON(t, plain.At("summary")) != asJSON(t, got.At("summary")) {
			t.Errorf("%s: %s", name, plain.Body)
		}
	}
	got := h.Do("GET", "/analytics/graphs/requests?"+period, admintest.WorkspaceA, nil).OK()
	if now, before := got.At("summary", "total"), got.At("previous", "summary", "total"); now != 6.0 || before != 4.0 {
		t.Errorf("%v and %v", now, before)
	}
	h.Do("GET", "/analytics/graphs/requests?"+day+"&compare=tomorrow", admintest.WorkspaceA, nil).RequireFault(400, "AB01", "compare")
	h.Do("GET", "/analytics/graphs/requests?time_of_generation_min=1970-01-02T00:00:00Z&time_of_generation_max=1975-01-02T00:00:00Z&compare=previous", admintest.WorkspaceA, nil).RequireFault(400, "AB01", "time_of_generation_min")
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
