package main

import (
	"fmt"
	"testing"
	"time"
)

// TestLogsBeyondTheRetentionDisappearImmediately: when the time is set, older logs disappear
// at once from lists, graphs, the log itself and its trace. When that is taken back, they
// appear again, because they are deleted later.
func TestLogsBeyondTheRetentionDisappearImmediately(t *testing.T) {
	t.Parallel()
	r := start(t)
	ids := make([]string, 3)
	for i, days := range []int{0, 3, 20} {
		body := fmt.Sprintf(`{"request":{"url":"https://api.openai.com/v1/chat/completions","method":"POST","body":{"model":"gpt-4o","messages":[{"role":"user","content":"x"}]}},
			"response":{"status":200,"body":{"model":"gpt-4o","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}},
			"metadata":{"trace_id":"trace-%d"},"created_at":%q}`, i, time.Now().AddDate(0, 0, -days).Add(-time.Minute).UTC().Format(time.RFC3339))
		got := r.call("POST", "/logs", body, "X-Gateway-Api-Key", workspaceKey)
		if got.status != 200 {
			t.Fatalf("POST /logs: %d %s", got.status, got.body)
		}
		ids[i] = member(got.json(t), "ids/0").(string)
	}
	span := "time_of_generation_min=" + time.Now().AddDate(0, 0, -30).UTC().Format(time.RFC3339) + "&time_of_generation_max=" + time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	count := func() float64 {
		return member(r.get("/logs?"+span, workspaceKey), "total").(float64)
	}
	eventually(t, func() error {
		if n := count(); n != 3 {
			return fmt.Errorf("%v of 3 logs", n)
		}
		return nil
	})
	expect := func(when string, shown ...int) {
		t.Helper()
		is := map[int]bool{}
		for _, i := range shown {
			is[i] = true
		}
		if n := count(); int(n) != len(shown) {
			t.Errorf("%s: %v logs are listed, want %d", when, n, len(shown))
		}
		for _, key := range []string{workspaceKey, adminKey} {
			if n := member(r.get("/analytics/graphs/requests?"+span, key), "summary/total"); n != float64(len(shown)) {
				t.Errorf("%s: %v requests are counted, want %d", when, n, len(shown))
			}
		}
		for i, id := range ids {
			want := 404
			if is[i] {
				want = 200
			}
			if got := r.call("GET", "/logs/"+id, "", "X-Gateway-Api-Key", workspaceKey); got.status != want {
				t.Errorf("%s: log %d answers %d, want %d", when, i, got.status, want)
			}
			if n := member(r.get(fmt.Sprintf("/logs?trace_id=trace-%d&%s", i, span), workspaceKey), "total"); (n == 1.0) != is[i] {
				t.Errorf("%s: %v logs of trace %d", when, n, i)
			}
		}
	}
	const settings = "/admin/organisation/settings"
	own := "/admin/workspaces/" + r.workspace() + "/settings"
	expect("at first", 0, 1, 2)
	if got := r.call("PUT", own, `{"request_logging":{"retention_days":1}}`, "X-Gateway-Api-Key", adminKey); got.status < 400 || got.status > 403 {
		t.Errorf("a workspace that is not let: %d %s", got.status, got.body)
	}
	r.admin("PUT", settings, `{"request_logging":{"retention_days":10},"workspace_overrides":{"request_logging":true}}`)
	expect("ten days of the organisation", 0, 1)
	r.admin("PUT", own, `{"request_logging":{"retention_days":1}}`)
	expect("one day of the workspace", 0)
	r.admin("PUT", own, `{"request_logging":{"retention_days":30}}`)
	expect("more of the workspace than of the organisation", 0, 1, 2)
	r.admin("PUT", settings, `{"workspace_overrides":{"request_logging":false}}`)
	expect("the workspace let no more", 0, 1)
	r.admin("PUT", settings, `{"request_logging":{"retention_days":null}}`)
	expect("taken back", 0, 1, 2)
}
