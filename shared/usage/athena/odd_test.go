package athena

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// odd are texts that need care in a query, or cannot be represented.
var odd = []string{"", "a\x00b", "\x00", "\x00\x00'\x00", "no \xff UTF-8", "\xc3(", "it's", `"x" \ %_`, "line\nline\r\t\x01", "\u00e9\u2028\U0001f600", "\ufffd", "'; --", "chr(0)"}

// For any texts in requests and queries, groups and filters return the same with and without
// the engine.
func TestAthenaIsQueriedWithOddTexts(t *testing.T) {
	t.Parallel()
	h, rnd := newFixture(t), rand.New(rand.NewPCG(5, 5))
	for i := range 400 {
		r := made(rnd, i, noon.Add(-40*time.Hour).Add(time.Duration(i)*5*time.Minute))
		text := odd[i%len(odd)]
		r.Model, r.EndUser, r.Metadata = text, text, map[string]string{text: text, "team": text}
		h.ingest(t, r)
		h.now = r.Start.Add(time.Minute)
	}
	h.now = noon
	h.compact(t)
	h.compact(t)
	f := report.Filter{From: noon.AddDate(0, 0, -3), To: noon}
	sc := store.Scope{Org: "org-1"}
	for _, text := range odd {
		for _, q := range []report.GroupQuery{{Filter: f, MetadataKey: text, Limit: 20}, {Filter: f, By: "model", Limit: 20}, {Filter: f, MetadataKey: "team", Limit: 20}} {
			if q.MetadataKey == "" && q.By == "" {
				continue
			}
			q.Filter.Metadata = map[string]string{text: text}
			q.Columns = []string{"p95_latency"}
			h.sameGroups(t, sc, &q)
		}
		q := report.GroupQuery{Filter: f, By: "status_code", Limit: 20}
		q.Filter.Models = []string{text, "other"}
		h.sameGroups(t, sc, &q)
	}
	if h.service.started() == 0 {
		t.Error("no query")
	}
}

// Names that only the last hour has, odd ones among them, are put in order with those
// of the files.
func TestAthenaPutsOddNamesInOrder(t *testing.T) {
	t.Parallel()
	h, rnd := newFixture(t), rand.New(rand.NewPCG(6, 6))
	const n = 24_000
	var all []usage.Record
	name := func(i int) string {
		if i%3 == 0 {
			return odd[i%len(odd)]
		}
		return fmt.Sprint(odd[i%len(odd)], rnd.IntN(100_000))
	}
	for i := range n {
		r := made(rnd, i, noon.Add(-30*time.Hour).Add(time.Duration(i)*3*time.Second))
		r.Metadata = map[string]string{"ticket": name(i)}
		all = append(all, r)
	}
	h.ingest(t, all...)
	h.now = noon.Add(-30 * time.Hour).Add(n * 3 * time.Second).Truncate(time.Hour).Add(6 * time.Minute)
	h.compact(t)
	h.compact(t)
	for i := range 60 {
		r := made(rnd, n+i, h.now.Add(-time.Duration(i)*time.Second))
		r.Metadata = map[string]string{"ticket": name(i)}
		h.ingest(t, r)
	}
	f := report.Filter{From: noon.AddDate(0, 0, -3), To: noon.AddDate(0, 0, 3)}
	for _, columns := range [][]string{nil, {"p99_latency"}} {
		before := h.service.started()
		h.sameGroups(t, store.Scope{Org: "org-1"}, &report.GroupQuery{Filter: f, MetadataKey: "ticket", Columns: columns, Limit: 40})
		if h.service.started() == before {
			t.Error("no query")
		}
	}
}

// Texts that cannot be represented are never sent.
func TestUnrepresentableTextsAreRejected(t *testing.T) {
	t.Parallel()
	service, cfg := newService(t, nil)
	e := New(cfg, Options{Workgroup: workgroup, Database: database, Table: table})
	for _, sql := range []string{"SELECT '\xff'", "SELECT '\x00'"} {
		if _, err := e.Query(context.Background(), "org-1", sql); err == nil || fault.From(err).Status() != 400 {
			t.Errorf("%q: %v", sql, err)
		}
	}
	if n := service.started(); n != 0 {
		t.Errorf("%d queries", n)
	}
}
