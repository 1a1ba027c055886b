package analytics

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/pricing"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// bookedCalls puts n requests to a model into the accounting: each of 100 tokens in, of
// which 40 were cached, 10 out, and a cent.
func bookedCalls(t testing.TB, h *admintest.Installation, a *segment.Archive, model string, n int, set func(i int, r *usage.Record)) (ids []string) {
	t.Helper()
	var all []usage.Record
	for i := range n {
		start := noon.Add(time.Duration(i) * time.Second)
		r := usage.Record{
			ID: ulid.MustNew(ulid.Timestamp(start), ulid.DefaultEntropy()).String(), Start: start, Org: admintest.Org, Workspace: h.One, WorkspaceSlug: admintest.OneSlug,
			Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions", Provider: "openai", ProviderSlug: "main", Model: model, ClientStatus: 200, Priced: true, Cost: 10_000_000,
		}
		r.Usage.Set(pricing.Input, 60)
		r.Usage.Set(pricing.CacheRead, 40)
		r.Usage.Set(pricing.Output, 10)
		r.Usage.Set(pricing.Requests, 1)
		r.Attempts = []usage.Attempt{{Provider: "openai", ProviderSlug: "main", Model: model, Status: 200, Usage: r.Usage, Cost: r.Cost}}
		if set != nil {
			set(i, &r)
		}
		ids = append(ids, r.ID)
		all = append(all, r)
	}
	if err := a.Ingest(context.Background(), all); err != nil {
		t.Fatal(err)
	}
	return ids
}

func csvOf(lines ...string) string {
	return fmt.Sprintf("%q", "date,model,requests,input_tokens,cached_tokens,output_tokens,cost_usd\n"+strings.Join(lines, "\n")+"\n")
}

func TestAReconciliationNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	h, a := newInstallation(t)
	bookedCalls(t, h, a, "gpt-4o-2024-08-06", 3, nil)
	doubtful := bookedCalls(t, h, a, "gpt-4o-mini", 2, func(i int, r *usage.Record) {
		if i == 1 {
			r.Usage.Estimated, r.Attempts[0].Usage.Estimated, r.ClientGone = true, true, true
		}
	})
	ours := bookedCalls(t, h, a, "o4-mini", 1, nil)
	// A call that a fallback replaced is invoiced too; one that the provider rejected, and
	// those of another provider, are not.
	bookedCalls(t, h, a, "claude", 1, func(_ int, r *usage.Record) {
		first := r.Attempts[0]
		first.Model = "gpt-4o"
		refused := usage.Attempt{Provider: "openai", ProviderSlug: "main", Model: "gpt-4o", Status: 429}
		last := r.Attempts[0]
		last.Provider, r.Provider = "anthropic", "anthropic"
		r.Attempts = []usage.Attempt{first, refused, last}
	})
	body := `{"provider":"openai","format":"csv","export":` + csvOf("2026-03-10,gpt-4o,4,400,160,40,0.04", "2026-03-10,gpt-4o-mini,2,200,80,25,0.02", "2026-03-10,gpt-5,1,5,0,5,0.5", "2026-03-09,gpt-4o,0,0,0,0,0") + `}`
	got := h.Do("POST", "/reconciliations", admintest.WorkspaceA, body).OK()
	if got.At("matches") != false || got.Text("object") != "reconciliation" {
		t.Errorf("%s", got.Body)
	}
	want := []struct {
		model            string
		matches          bool
		theirs, ours     bool
		requests, output float64
		behind           []string
	}{
		{"gpt-4o", true, true, false, 0, 0, nil}, // the day before
		{"gpt-4o", true, true, true, 0, 0, nil},
		{"gpt-4o-mini", false, true, true, 0, 5, []string{doubtful[1], doubtful[0]}},
		{"gpt-5", false, true, false, 1, 5, []string{}},
		{"o4-mini", false, false, true, 0, 0, ours},
	}
	lines := got.At("lines").([]any)
	if len(lines) != len(want) {
		t.Fatalf("%s", got.Body)
	}
	for i, w := range want {
		l := lines[i].(map[string]any)
		if l["model"] != w.model || l["matches"] != w.matches || (l["theirs"] != nil) != w.theirs || (l["ours"] != nil) != w.ours {
			t.Errorf("line %d: %v", i, l)
		}
		if by := l["difference"].(map[string]any); w.theirs && (by["requests"] != w.requests || by["output_tokens"] != w.output) {
			t.Errorf("line %d differs by %v", i, by)
		}
		behind := l["requests"].([]any)
		if len(behind) != len(w.behind) {
			t.Errorf("line %d: requests %v", i, behind)
			continue
		}
		for n, id := range w.behind {
			if behind[n].(map[string]any)["log_id"] != id {
				t.Errorf("line %d: request %d is %v", i, n, behind[n])
			}
		}
	}
	if doubt := fmt.Sprint(lines[2].(map[string]any)["requests"].([]any)[0].(map[string]any)["doubt"]); doubt != "[client_gone estimated]" {
		t.Errorf("doubt %s", doubt)
	}
}

func TestAReconciliationSeesItsTenantOnly(t *testing.T) {
	t.Parallel()
	h, a := newInstallation(t)
	bookedCalls(t, h, a, "gpt-4o", 3, nil)
	body := `{"provider":"openai","format":"csv","export":` + csvOf("2026-03-10,gpt-4o,3,300,120,30,0.03") + `}`
	if got := h.Do("POST", "/reconciliations", admintest.WorkspaceA, body).OK(); got.At("matches") != true {
		t.Errorf("%s", got.Body)
	}
	if got := h.Do("POST", "/reconciliations", admintest.WorkspaceB, body).OK(); got.At("lines", "0", "ours") != nil || got.At("matches") != false {
		t.Errorf("another workspace: %s", got.Body)
	}
}

func TestBadReconciliations(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	for _, x := range []struct{ body, field string }{
		{`{}`, "provider"},
		{`{"provider":"openai","format":"pdf","export":"x"}`, "format"},
		{`{"provider":"openai","format":"csv","export":5}`, "export"},
		{`{"provider":"openai","format":"csv","export":""}`, "export"},
		{`{"provider":"openai","format":"openai","export":{"data":[]}}`, "export"},
		{`{"provider":"openai","format":"csv","export":"date\n2026-01-01\n2026-12-01\n"}`, "export"},
		{`{"provider":5,"format":"csv","export":"date\n2026-01-01\n"}`, "provider"},
		{`{"provider":"openai","format":"csv","export":"date\n2026-01-01\n","provider_slugs":"x"}`, "provider_slugs"},
	} {
		h.Do("POST", "/reconciliations", admintest.WorkspaceA, x.body).RequireFault(400, "AB01", x.field)
	}
}
