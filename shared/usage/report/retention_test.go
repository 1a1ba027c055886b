package report

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// For any retention of each workspace, and whether older records were already deleted or not:
// every response is the one of the records within the retention.
func TestResultsFollowTheRetentionOfEachWorkspace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newFixture(t)
		days := func(name string) int { return rapid.IntRange(0, 5).Draw(rt, name) }
		retention := usage.WorkspaceRetention{Standard: days("standard")}
		if rapid.Bool().Draw(rt, "own") {
			retention.Of = map[string]int{"ws-2": days("own days")}
		}
		records := drawRecords(rt, 20)
		deliver(rt, t, h, records)
		h.retention = map[string]usage.WorkspaceRetention{"org-1": retention} // from now on
		for range rapid.IntRange(0, 3).Draw(rt, "retained") {
			h.now = h.now.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "hours")) * time.Hour)
			if rapid.Bool().Draw(rt, "compacted") {
				h.compact(t)
			}
			if err := h.archive.Retain(context.Background()); err != nil {
				rt.Fatal(err)
			}
		}
		if rapid.Bool().Draw(rt, "a process without memory") {
			h.open()
		}
		f := drawFilter(rt)
		scope := store.Scope{Org: rapid.SampledFrom([]string{"org-1", "org-2"}).Draw(rt, "org"), Workspace: rapid.SampledFrom([]string{"", "ws-1", "ws-2"}).Draw(rt, "ws")}
		var want []usage.Record
		for i := range records {
			r := &records[i]
			of := h.retention[r.Org]
			if !passes(scope, &f, r) {
				continue
			}
			if r.Start.UnixMicro() >= of.Cutoff(r.Workspace, h.now) {
				want = append(want, *r)
			} else if _, ok, err := h.reader.Log(context.Background(), scope, r.ID); ok || err != nil {
				rt.Fatalf("log %s of %s is shown: %v", r.ID, r.Start, err)
			}
		}
		checkSeries(rt, h, scope, &f, want)
		checkGroups(rt, h, scope, &f, want)
		checkLogs(rt, h, scope, &f, want)
		checkWalk(rt, h, scope, &f, want)
	})
}

// One workspace still retains records that the other does not, of the same hours and segments:
// the organization sees only the first one's.
func TestAnOrganisationSeesTheRetainedRecordsOfItsWorkspaces(t *testing.T) {
	for _, merged := range []bool{false, true} {
		h := newFixture(t)
		var records []usage.Record
		for i := range 40 {
			r := made(i, noon.AddDate(0, 0, -i/8).Add(-time.Duration(i%8)*time.Minute))
			r.Workspace = []string{"ws-1", "ws-2"}[i%2]
			r.WorkspaceSlug, r.EndUser = "slug-"+r.Workspace, "user of "+r.Workspace
			r.Metadata = map[string]string{"_user": r.EndUser}
			records = append(records, r)
		}
		h.ingest(t, records...)
		h.now = noon.Add(13 * time.Hour) // one more day has begun
		if merged {
			h.compact(t)
		}
		h.retention = map[string]usage.WorkspaceRetention{"org-1": {Of: map[string]int{"ws-2": 2}}}
		org := store.Scope{Org: "org-1"}
		// ws-2 retains yesterday and the day before: two of five days.
		f := Filter{From: noon.AddDate(0, 0, -30), To: noon}
		b, groups, err := h.reader.series(context.Background(), org, &f, aspect{by: plain.by, users: true})
		if err != nil {
			t.Fatal(err)
		}
		if n := total(groups[""]).Requests; n != 20+8 {
			t.Errorf("merged %v: %d requests in %d buckets, want 28", merged, n, b.n)
		}
		list, _, err := h.reader.Groups(context.Background(), org, &GroupQuery{Filter: f, By: "workspace"})
		if err != nil || len(list) != 2 || list[0].Requests != 20 || list[1].Requests != 8 {
			t.Errorf("merged %v: groups %+v, %v", merged, list, err)
		}
		page, err := h.reader.Logs(context.Background(), org, &LogQuery{Filter: f, Limit: 100})
		if err != nil || len(page.Records) != 28 || page.Total != 28 {
			t.Errorf("merged %v: %d logs of %d, %v", merged, len(page.Records), page.Total, err)
		}
		f.To = noon.AddDate(0, 0, -2).Add(-time.Hour) // before the retention of ws-2
		_, groups, err = h.reader.series(context.Background(), org, &f, aspect{by: plain.by, users: true})
		if err != nil {
			t.Fatal(err)
		}
		if all := total(groups[""]); all.Requests != 8 || all.Users() != 1 {
			t.Errorf("merged %v: %d requests of %d users, want 8 of one", merged, all.Requests, all.Users())
		}
	}
}
