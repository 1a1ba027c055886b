package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/blob"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/testkit/usagetest"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// fixture is an archive on an embedded store with a fake clock.
type fixture struct {
	store     store.Store
	bucket    blob.Bucket
	archive   *segment.Archive
	reader    *Reader
	now       time.Time
	retention map[string]usage.WorkspaceRetention // by organization
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s, b := usagetest.Open(t, t.TempDir())
	h := &fixture{store: s, bucket: b, now: noon}
	h.open()
	return h
}

// open begins a new process: nothing is in its memory.
func (h *fixture) open() {
	h.archive = segment.New(h.store, h.bucket, segment.Options{Clock: func() time.Time { return h.now }, WorkspaceRetention: h.retentionDays})
	h.reader = New(h.archive, h.bucket)
}

func (h *fixture) retentionDays(_ context.Context, sc store.Scope) (usage.WorkspaceRetention, error) {
	retention := h.retention[sc.Org]
	if sc.Workspace != "" {
		retention = usage.WorkspaceRetention{Standard: retention.Days(sc.Workspace)}
	}
	return retention, nil
}

func (h *fixture) ingest(t testing.TB, records ...usage.Record) {
	t.Helper()
	if err := h.archive.Ingest(context.Background(), slices.Clone(records)); err != nil {
		t.Fatal(err)
	}
}

func (h *fixture) compact(t testing.TB) {
	t.Helper()
	if err := h.archive.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
}

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

var sc = store.Scope{Org: "org-1", Workspace: "ws-1"}

// made makes the i-th record, begun at start.
func made(i int, start time.Time) usage.Record {
	r := usage.Record{
		ID: usagetest.ID(i, start), Start: start.UTC().Truncate(time.Millisecond), Org: "org-1", Workspace: "ws-1", WorkspaceSlug: "one", KeyID: "key-1", KeyType: "workspace-service",
		Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions", Provider: "openai", ProviderSlug: "main", Model: "gpt-4o", ClientStatus: 200,
		Cost: 1_000_000, Priced: true, Duration: 100 * time.Millisecond, CacheStatus: "MISS", EndUser: "alice", Metadata: map[string]string{"_user": "alice"},
	}
	r.Usage.Set(pricing.Input, 10)
	r.Usage.Set(pricing.Output, 5)
	return r
}

// drawRecords makes records around noon, with few values so that they collide.
func drawRecords(t *rapid.T, most int) []usage.Record {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	n := rapid.IntRange(0, most).Draw(t, "records")
	records := make([]usage.Record, n)
	varied := rapid.Bool().Draw(t, "varied") // else many records share a cell of a cube
	spread := rapid.SampledFrom([]int64{60_000, 3 * 3_600_000, 5 * 24 * 3_600_000}).Draw(t, "spread")
	for i := range records {
		at := noon.Add(time.Duration(rapid.Int64Range(-spread, 0).Draw(t, "ms")) * time.Millisecond)
		r := made(i, at)
		if records[i] = r; !varied {
			continue
		}
		r.Org, r.Workspace = pick("org", "org-1", "org-1", "org-1", "org-2"), pick("ws", "ws-1", "ws-1", "ws-2")
		r.WorkspaceSlug = "slug-" + r.Workspace
		r.KeyID, r.Provider, r.Model = pick("key", "k1", "k2", ""), pick("provider", "openai", "anthropic"), pick("model", "a", "b", "c")
		r.ProviderSlug, r.ConfigSlug, r.PromptSlug = pick("slug", "main", "other", ""), pick("config", "", "c1"), pick("prompt", "", "p1")
		r.Agent = usage.Agent{Session: pick("session", "", "s1", "s2"), ID: pick("agent", "", "a1", "a2"), Parent: pick("parent agent", "", "a1")}
		r.CacheStatus, r.Endpoint = pick("cache", "HIT", "SEMANTIC HIT", "MISS", "DISABLED"), pick("endpoint", "chatComplete", "embed", usage.EndpointSpan)
		r.ClientStatus = rapid.SampledFrom([]int{200, 201, 400, 429, 500}).Draw(t, "status")
		r.RetryCount = rapid.SampledFrom([]int{0, 0, 1, 2, -1}).Draw(t, "retries")
		r.Mode, r.OptionIndex = pick("mode", "", "fallback"), pick("option", "config.targets[0]", "config.targets[1]")
		r.Cost = pricing.NanoDollars(rapid.Int64Range(0, 1e9).Draw(t, "cost"))
		r.Running = pricing.NanoDollars(rapid.Int64Range(0, 1e5).Draw(t, "running"))
		r.CacheSaved = pricing.NanoDollars(rapid.Int64Range(0, 1e9).Draw(t, "saved"))
		r.Duration = time.Duration(rapid.Int64Range(0, 1e11).Draw(t, "duration"))
		r.Usage = pricing.Usage{}
		r.Usage.Set(pricing.Input, rapid.Int64Range(0, 1000).Draw(t, "in"))
		r.Usage.Set(pricing.Output, rapid.Int64Range(0, 1000).Draw(t, "out"))
		r.EndUser, r.UserID, r.TraceID = pick("user", "", "alice", "bob", "carol"), pick("uid", "", "u1"), pick("trace", "", "t1", "t2")
		r.Metadata = nil
		if team := pick("team", "", "search", "ads"); team != "" {
			r.Metadata = map[string]string{"team": team, "_user": r.EndUser}
		}
		if rapid.IntRange(0, 4).Draw(t, "bodies") == 0 {
			r.Bodies = []byte(fmt.Sprint("bodies of ", r.ID))
		}
		records[i] = r
	}
	return records
}

func drawFilter(t *rapid.T) Filter {
	some := func(name string, of ...string) []string {
		if rapid.IntRange(0, 3).Draw(t, "filter "+name) > 0 {
			return nil
		}
		return rapid.SliceOfN(rapid.SampledFrom(of), 1, 2).Draw(t, name)
	}
	span := func(name string, most int64) (r Range) {
		if rapid.IntRange(0, 7).Draw(t, "filter "+name) == 0 {
			low := rapid.Int64Range(0, most).Draw(t, name)
			r.Min = &low
		}
		if rapid.IntRange(0, 7).Draw(t, "filter "+name) == 0 {
			high := rapid.Int64Range(0, most).Draw(t, name)
			r.Max = &high
		}
		return r
	}
	zone := time.FixedZone("", rapid.SampledFrom([]int{0, 3600, 19800, -34200, 45900}).Draw(t, "offset"))
	from := noon.Add(-time.Duration(rapid.SampledFrom([]int64{60, 3601, 7200, 40_000, 172_800, 500_000, 5_184_000, 9_000_000}).Draw(t, "from")) * time.Second)
	f := Filter{From: from.In(zone), To: noon.Add(-time.Duration(rapid.SampledFrom([]int64{0, 0, 17, 3000}).Draw(t, "to")) * time.Second)}
	if f.To.Before(f.From) {
		f.To = f.From
	}
	if rapid.IntRange(0, 3).Draw(t, "filter status") == 0 {
		f.Statuses = []int{200, 429}
	}
	f.ProviderSlugs, f.Configs, f.Prompts = some("slug", "main", "other"), some("config", "c1", "none"), some("prompt", "p1")
	f.Keys, f.Models = some("key", "k1", "k2"), some("model", "a", "b")
	f.TraceIDs, f.UserIDs = some("trace", "t1", "t2"), some("uid", "u1")
	if rapid.IntRange(0, 3).Draw(t, "filter pair") == 0 {
		f.ProviderModel = []ProviderModel{{"openai", "a"}, {"anthropic", "b"}}
	}
	if rapid.IntRange(0, 5).Draw(t, "filter metadata") == 0 {
		f.Metadata = map[string]string{"team": "ads"}
	}
	f.TotalTokens, f.PromptTokens, f.CompletionTokens, f.Cost = span("total", 2000), span("in", 1000), span("out", 1000), span("cost", 1e9)
	return f
}

// passes is a second implementation of the filter, record by record.
func passes(sc store.Scope, f *Filter, r *usage.Record) bool {
	in := func(values []string, v string) bool { return len(values) == 0 || slices.Contains(values, v) }
	pair := len(f.ProviderModel) == 0 || slices.Contains(f.ProviderModel, ProviderModel{r.Provider, r.Model})
	for k, v := range f.Metadata {
		if got, ok := r.Metadata[k]; !ok || got != v {
			return false
		}
	}
	return r.Org == sc.Org && (sc.Workspace == "" || r.Workspace == sc.Workspace) &&
		!r.Start.Before(f.From) && !r.Start.After(f.To) && pair &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, r.ClientStatus)) &&
		in(f.ProviderSlugs, r.ProviderSlug) && in(f.Configs, r.ConfigSlug) && in(f.Prompts, r.PromptSlug) && in(f.Keys, r.KeyID) && in(f.Models, r.Model) &&
		in(f.TraceIDs, r.TraceID) && in(f.UserIDs, r.UserID) &&
		f.TotalTokens.has(r.Usage.TotalTokens()) && f.PromptTokens.has(r.Usage.InputTokens()) && f.CompletionTokens.has(r.Usage.OutputTokens()) && f.Cost.has(int64(r.Cost))
}

// truth computes Stats from the records themselves.
func truth(records []usage.Record) (s Stats, users int) {
	names := make(map[string]bool)
	for i := range records {
		r := &records[i]
		if r.Endpoint == usage.EndpointSpan {
			continue // no request
		}
		s.Requests++
		s.Cost += r.Cost
		s.Saved += r.CacheSaved
		s.Running += r.Running
		s.TokensIn += r.Usage.InputTokens()
		s.TokensOut += r.Usage.OutputTokens()
		s.Duration += r.Duration.Truncate(time.Microsecond)
		if !r.Success() {
			s.Errors++
		}
		if r.CacheStatus == "HIT" {
			s.Hits++
		}
		if strings.HasPrefix(r.CacheStatus, "SEMANTIC H") {
			s.Semantic++
		}
		if r.EndUser != "" {
			s.WithUser++
			names[r.EndUser] = true
		}
	}
	return s, len(names)
}
