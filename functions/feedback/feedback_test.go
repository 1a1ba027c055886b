package feedback

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage/feedback"
)

const key = admintest.WorkspaceA

func newInstallation(t testing.TB) (*admintest.Installation, *feedback.Store) {
	t.Helper()
	var s *feedback.Store
	h := admintest.Build(t, func(d admin.Deps) []admin.Family {
		s = feedback.New(d.Resources.Store(), time.Now, 24*time.Hour, nil)
		return []admin.Family{New(s)}
	})
	return h, s
}

func ofTrace(t testing.TB, h *admintest.Installation, s *feedback.Store, workspace, trace string) string {
	t.Helper()
	all, err := s.OfTrace(context.Background(), store.Scope{Org: admintest.Org, Workspace: workspace}, trace)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range all {
		out = append(out, fmt.Sprint(f.Value, " ", f.Weight, " ", string(f.Metadata)))
	}
	return strings.Join(out, ", ")
}

func TestTheFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	admintest.CheckFamily(t, h)
	body := `{"trace_id":"t","value":1}`
	id := h.Do("POST", "/feedback", key, body).OK().Text("feedback_ids", "0")
	for who, query := range map[string]string{admintest.WorkspaceB: ""} {
		foreign, missing := h.Do("PUT", "/feedback/"+id+query, who, `{"value":2}`), h.Do("PUT", "/feedback/"+resource.NewID()+query, who, `{"value":2}`)
		if foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
			t.Errorf("%s\n%s", foreign.Comparable(), missing.Comparable())
		}
	}
	for _, who := range []string{admintest.AdminKey, admintest.OtherAdmin} {
		h.Do("POST", "/feedback", who, body).RequireFault(403, "AB03", "")
		h.Do("PUT", "/feedback/"+id, who, `{"value":2}`).RequireFault(403, "AB03", "")
	}
	h.Do("PUT", "/feedback/x", key, `{"value":2}`).RequireFault(404, "AB08", "id")
	if n := len(h.Audit()); n != 0 {
		t.Errorf("%d records in the audit log", n)
	}
	for _, scope := range []string{"logs.write", "feedbacks.write", "completions.write"} {
		c := h.Caller(key)
		c.Scopes = admintest.ScopeList{scope}
		h.SetCaller("one-scope", c)
		h.Do("POST", "/feedback", "one-scope", body).OK()
	}
}

func TestBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	h, s := newInstallation(t)
	for body, fields := range map[string]string{
		`{"value":1}`: "trace_id", `{"trace_id":"t"}`: "value", `{"trace_id":"t","value":11}`: "value", `{"trace_id":"t","value":-11}`: "value", `{"trace_id":"t","value":1.5}`: "value",
		`{"trace_id":"t","value":"1"}`: "value", `{"trace_id":"t","value":1,"weight":1.1}`: "weight", `{"trace_id":"t","value":1,"weight":-0.1}`: "weight", `{"trace_id":"t","value":1,"metadata":[]}`: "metadata",
		`{"trace_id":"","value":1}`: "trace_id", `{"trace_id":"t","value":null}`: "value", `{"trace_id":"` + strings.Repeat("t", 257) + `","value":1}`: "trace_id",
		`{"trace_id":"t","value":1,"metadata":{"a":"` + strings.Repeat("x", 9<<10) + `"}}`: "metadata",
		`[{"trace_id":"t","value":1},{"trace_id":5,"value":99}]`:                           "[1].trace_id [1].value",
		`[{"trace_id":"t","value":1},5]`:                                                   "[1]", `[{"trace_id":"t","value":1},null]`: "[1]",
		`[]`: "", `[[]]`: "[0]", `[{"trace_id":"t","value":1},{"value":1,"value":2}]`: "", `[{"trace_id":"t","value":1}`: "", `[{"trace_id":"t","value":1}]x`: "",
		"[" + strings.TrimSuffix(strings.Repeat(`{"trace_id":"t","value":1},`, MaxList+1), ",") + "]": "",
	} {
		got := h.Do("POST", "/feedback", key, body)
		got.RequireFault(400, "AB01", "")
		for _, field := range strings.Fields(fields) {
			got.RequireFault(400, "AB01", field)
		}
	}
	if got := ofTrace(t, h, s, h.One, "t"); got != "" {
		t.Errorf("a refused call is kept: %s", got)
	}
	admintest.BadBodies(t, h, "PUT", "/feedback/"+resource.NewID(), key, `{"value":1}`)
}

func TestFeedbackIsFoundByItsTrace(t *testing.T) {
	t.Parallel()
	h, s := newInstallation(t)
	one := h.Do("POST", "/feedback", key, `{"trace_id":"a#b/ü","value":-10,"weight":0.25,"metadata":{"_user":"ann"}}`).OK()
	if one.Text("status") != "success" || one.Text("message") == "" {
		t.Errorf("%s", one.Body)
	}
	if got := ofTrace(t, h, s, h.One, "a#b/ü"); got != `-10 0.25 {"_user":"ann"}` {
		t.Error(got)
	}
	if got := ofTrace(t, h, s, h.Two, "a#b/ü"); got != "" {
		t.Errorf("another workspace sees %s", got)
	}
	id := one.Text("feedback_ids", "0")
	h.Do("PUT", "/feedback/"+id, key, `{"value":3}`).OK()
	if got := ofTrace(t, h, s, h.One, "a#b/ü"); got != `3 0.25 {"_user":"ann"}` {
		t.Error(got)
	}
	if got := h.Do("PUT", "/feedback/"+id, key, `{"value":0,"weight":1,"metadata":null}`).OK(); got.Text("feedback_ids", "0") != id {
		t.Errorf("%s", got.Body)
	}
	if got := ofTrace(t, h, s, h.One, "a#b/ü"); got != "0 1 " {
		t.Error(got)
	}
}

func TestManyAtOnceInTheirOrder(t *testing.T) {
	t.Parallel()
	h, s := newInstallation(t)
	var list []map[string]any
	for i := range MaxList {
		list = append(list, map[string]any{"trace_id": fmt.Sprint("t", i), "value": i%21 - 10})
	}
	got := h.Do("POST", "/feedback", key, list).OK()
	ids := got.At("feedback_ids").([]any)
	if len(ids) != MaxList {
		t.Fatalf("%d ids", len(ids))
	}
	// The ids are those of the entries, in their order.
	h.Do("PUT", "/feedback/"+ids[40].(string), key, `{"value":10}`).OK()
	if got := ofTrace(t, h, s, h.One, "t40"); got != "10 1 " {
		t.Error(got)
	}
	var sum, n int64
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	now := time.Now()
	for span, want := range map[[2]time.Duration]int64{{-time.Hour, time.Hour}: MaxList, {-2 * time.Hour, -time.Hour}: 0, {time.Hour, 2 * time.Hour}: 0} {
		n = 0
		if err := s.Between(context.Background(), sc, now.Add(span[0]), now.Add(span[1]), func(f *feedback.Feedback) bool { n++; sum += f.Value; return true }); err != nil || n != want {
			t.Errorf("%v: %d, %v", span, n, err)
		}
	}
	want := int64(10) - (40%21 - 10)
	for i := range MaxList {
		want += int64(i%21 - 10)
	}
	if sum != want {
		t.Errorf("sum %d, want %d", sum, want)
	}
}

// Feedback expires with the records that it is about.
func TestFeedbackEnds(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	clock := time.Now().Add(-48 * time.Hour)
	old := feedback.New(h.Store, func() time.Time { return clock }, 24*time.Hour, nil)
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	f := []feedback.Feedback{{ID: resource.NewID(), Trace: "t", Value: 1, Weight: 1, Metadata: json.RawMessage(`{}`)}}
	if err := old.Add(context.Background(), sc, f); err != nil {
		t.Fatal(err)
	}
	all, err := old.OfTrace(context.Background(), sc, "t")
	if err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
	h.Do("PUT", "/feedback/"+f[0].ID, key, `{"value":1}`).RequireFault(404, "AB08", "id")
}
