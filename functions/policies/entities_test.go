package policies

import (
	"context"
	"fmt"
	"testing"

	"gateway/shared/ledger"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// counters uses n buckets of a policy of rates and gives the path of its entities.
func counters(t *testing.T, h *admintest.Installation, l *ledger.Ledger, n int) string {
	t.Helper()
	id := h.Do("POST", rates, key, `{"name":"R","conditions":[{"key":"metadata.u","value":"*"}],"group_by":[{"key":"metadata.u"}],"type":"requests","unit":"rpw","value":2}`).OK().Text("id")
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	rec, ok, err := h.Resources.Get(context.Background(), sc, ledger.KindRatePolicy, id)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	p, err := ledger.DecodePolicy(rec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		s := p.SubjectOf(sc, id, p.Name, p.Revision, fmt.Sprintf("metadata.u:%05d", i))
		for range 1 + i%2 {
			if _, err := l.Admit(context.Background(), "", []*ledger.Subject{s}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return rates + "/" + id + "/entities"
}

func TestCountersOfARatePolicy(t *testing.T) {
	t.Parallel()
	h, l := newInstallation(t)
	at := counters(t, h, l, 4)
	got := h.Do("GET", at, key, nil).OK()
	if got.At("total") != 4.0 || got.Text("data", "1", "value_key") != "metadata.u:00001" || got.At("data", "1", "current_usage") != 2.0 || got.Text("data", "1", "status") != "exhausted" ||
		got.Text("data", "0", "status") != "active" || got.Text("data", "0", "window_resets_at") == "" || got.At("next_cursor") != nil || got.At("total_is_lower_bound") != nil {
		t.Errorf("%s", got.Body)
	}
	if got := h.Do("GET", at+"?status=exhausted&search=3", key, nil).OK(); got.At("total") != 1.0 || got.Text("data", "0", "value_key") != "metadata.u:00003" {
		t.Errorf("%s", got.Body)
	}
	first := h.Do("GET", at+"?page_size=3", key, nil).OK()
	rest := h.Do("GET", at+"?page_size=3&cursor="+first.Text("next_cursor"), key, nil).OK()
	if rest.At("total") != 1.0 || rest.Text("data", "0", "value_key") != "metadata.u:00003" || rest.At("next_cursor") != nil {
		t.Errorf("%s", rest.Body)
	}
	if got := h.Do("GET", at+"?page_size=3&current_page=1", key, nil).OK(); got.At("total") != 4.0 || got.Text("data", "0", "value_key") != "metadata.u:00003" || got.At("next_cursor") != nil {
		t.Errorf("%s", got.Body)
	}
	for query, field := range map[string]string{"cursor=!!": "cursor", "cursor=_w": "cursor", "current_page=1&cursor=" + first.Text("next_cursor"): "cursor", "page_size=101": "page_size", "status=expired": "status"} {
		h.Do("GET", at+"?"+query, key, nil).RequireFault(400, "AB01", field)
	}
	for _, who := range []string{admintest.WorkspaceB, admintest.OtherAdmin} {
		query := ""
		if who == admintest.OtherAdmin {
			query = "?workspace_id=" + h.Three
		}
		h.Do("GET", at+query, who, nil).RequireFault(404, "AB08", "")
	}
}

// A list reaches beyond what one call counts.
func TestMoreCountersThanOneCallCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 10,050 counters")
	}
	h, l := newInstallation(t)
	const many = maxEntities + 50
	at := counters(t, h, l, many)
	got := h.Do("GET", at+"?page_size=100&current_page=99", key, nil).OK()
	if got.At("total") != float64(maxEntities) || got.At("total_is_lower_bound") != true || got.Text("data", "99", "value_key") != fmt.Sprintf("metadata.u:%05d", maxEntities-1) {
		t.Fatalf("%.300s", got.Body)
	}
	got = h.Do("GET", at+"?page_size=100&cursor="+got.Text("next_cursor"), key, nil).OK()
	if got.At("total") != 50.0 || got.Text("data", "0", "value_key") != fmt.Sprintf("metadata.u:%05d", maxEntities) || got.At("next_cursor") != nil || got.At("total_is_lower_bound") != nil {
		t.Errorf("%.300s", got.Body)
	}
}
