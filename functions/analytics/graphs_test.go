package analytics

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"gateway/shared/testkit/admintest"
	"gateway/shared/usage/report"
)

func TestSeveralGraphsAreThoseOfTheirOwnPaths(t *testing.T) {
	t.Parallel()
	h, a := newInstallation(t)
	fill(t, h, a)
	q := url.Values{"time_of_generation_min": {noon.Add(-time.Hour).Format(time.RFC3339)}, "time_of_generation_max": {noon.Add(time.Hour).Format(time.RFC3339)}, "compare": {"previous"}, "ai_model": {"m1"}}
	names := report.GraphNames()
	for len(names) > 0 {
		n := min(maxGraphs, len(names))
		q.Set("include", strings.Join(names[:n], ","))
		got := h.Do("GET", "/analytics/graphs?"+q.Encode(), admintest.AdminKey, nil).OK()
		for _, name := range names[:n] {
			want := h.Do("GET", "/analytics/graphs/"+name+"?"+without(q), admintest.AdminKey, nil).OK()
			one, err := json.Marshal(got.At("graphs", name))
			if err != nil {
				t.Fatal(err)
			}
			alone, err := json.Marshal(want.At())
			if err != nil {
				t.Fatal(err)
			}
			if string(one) != string(alone) || !strings.Contains(string(one), `"previous"`) {
				t.Errorf("%s: %s, alone %s", name, one, alone)
			}
		}
		names = names[n:]
	}
	q.Set("include", "cost,none")
	h.Do("GET", "/analytics/graphs?"+q.Encode(), admintest.AdminKey, nil).RequireFault(400, "AB01", "include")
	q.Set("include", strings.Repeat("cost,", maxGraphs)+"cost")
	h.Do("GET", "/analytics/graphs?"+q.Encode(), admintest.AdminKey, nil).RequireFault(400, "AB01", "include")
	h.Do("GET", "/analytics/graphs?"+without(q), admintest.AdminKey, nil).RequireFault(400, "AB01", "include")
}

// without is a query without the graphs that are included.
func without(q url.Values) string {
	out := url.Values{}
	for k, v := range q {
		if k != "include" {
			out[k] = v
		}
	}
	return out.Encode()
}
