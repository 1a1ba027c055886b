package integrations

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// One call opens an integration to more workspaces than a transaction has rows, each with
// individual settings; a repetition changes nothing.
func TestManyWorkspacesAreNamedInOneCall(t *testing.T) {
	h := newInstallation(t)
	const many = 130
	addWorkspaces(t, h, many)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	var entries []string
	for n := range many {
		entry := fmt.Sprintf(`{"id":"ws-more-%06d","enabled":true,"rate_limits":[{"type":"requests","unit":"rpm","value":%d}]`, n, n+1)
		switch n % 3 {
		case 0:
			entry += fmt.Sprintf(`,"default_provider_slug":"own-%d"`, n)
		case 1:
			entry += `,"create_default_provider":false`
		}
		entries = append(entries, entry+"}")
	}
	body := `{"default_provider_slug":"common","workspaces":[` + strings.Join(entries, ",") + `]}`
	taken := strings.Replace(body, `"ws-more-000129"`, `"ws-of-nobody"`, 1)
	h.Do("PUT", path, chief, taken).RequireFault(400, "AB01", "workspaces[129].id")
	rec, i := stored(t, h, "", slug)
	if users, err := h.Resources.Users(context.Background(), rec.Ref()); err != nil || len(users) != 0 || len(i.Workspaces) != 0 {
		t.Fatalf("a refused call made %d providers, %v", len(users), err)
	}
	for range 2 {
		h.Do("PUT", path, chief, body).OK()
		rec, i = stored(t, h, "", slug)
		users, err := h.Resources.Users(context.Background(), rec.Ref())
		if err != nil || len(users) != 87 || len(i.Workspaces) != many {
			t.Fatalf("%d providers, %d workspaces, %v", len(users), len(i.Workspaces), err)
		}
	}
	spaces, err := h.Resources.List(context.Background(), rec.Scope, "WORKSPACE")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range spaces {
		var n int
		if _, err := fmt.Sscanf(row.Slug, "ws-more-%06d", &n); err != nil {
			continue
		}
		want := [...]string{fmt.Sprintf("own-%d", n), "", "common"}[n%3]
		got := ""
		if made := providersIn(t, h, row.ID); len(made) == 1 {
			got = made[0].Slug
		}
		if a := i.Access(row.ID); got != want || !a.Enabled || len(a.RateLimits) != 1 || a.RateLimits[0].Value != int64(n+1) {
			t.Errorf("%s: provider %q, want %q; %+v", row.Slug, got, want, a)
		}
	}
	if got := h.Do("GET", path+"?page_size=1000", chief, nil).OK(); got.At("total") != float64(many) {
		t.Errorf("%v workspaces are listed", got.At("total"))
	}
	// The flag gives all of them the global settings, and closes what those close.
	h.Do("PUT", path, chief, `{"workspaces":[],"override_existing_workspace_access":true}`).OK()
	if _, i = stored(t, h, "", slug); len(i.Workspaces) != 0 || i.Access(spaces[0].ID).Enabled {
		t.Errorf("%d workspaces have settings of their own", len(i.Workspaces))
	}
	log := h.Audit()
	if last := log[len(log)-1]; last.Action != "manage" || last.ResourceID != rec.ID {
		t.Errorf("audit: %+v", last)
	}
}

// Settings that do not fit into a record are rejected, and none of them are stored.
func TestMoreWorkspacesThanARecordHolds(t *testing.T) {
	h := newInstallation(t)
	addWorkspaces(t, h, 2000)
	slug := create(t, h, chief, `,"slug":"org"`)
	for part, want := range []int{200, 400} {
		var entries []string
		for n := range 1000 {
			entries = append(entries, fmt.Sprintf(`{"id":"ws-more-%06d","enabled":true,"create_default_provider":false,"usage_limits":[{"type":"cost","credit_limit":100.5,"alert_threshold":50,"periodic_reset":"monthly"}],"rate_limits":[{"type":"requests","unit":"rpm","value":1000000}]}`, part*1000+n))
		}
		got := h.Do("PUT", "/integrations/"+slug+"/workspaces", chief, `{"workspaces":[`+strings.Join(entries, ",")+`]}`)
		if _, i := stored(t, h, "", slug); got.Status != want || len(i.Workspaces) != 1000 {
			t.Errorf("part %d: %d %s; %d workspaces", part, got.Status, got.Body, len(i.Workspaces))
		}
	}
}

func TestTagsChooseIntegrations(t *testing.T) {
	h := newInstallation(t)
	for name, tags := range map[string]string{"a": `{"env":"prod","team":"x"}`, "b": `{"env":"prod"}`, "c": `{"env":"test"}`} {
		create(t, h, chief, `,"slug":"`+name+`","tags":`+tags)
	}
	for tags, want := range map[string]float64{`{"env":"prod"}`: 2, `{"env":"prod","team":"x"}`: 1, `{"team":"y"}`: 0, `{}`: 3} {
		if got := h.Do("GET", "/integrations?tags="+url.QueryEscape(tags), chief, nil).OK(); got.At("total") != want {
			t.Errorf("%s: %v, want %v", tags, got.At("total"), want)
		}
	}
	h.Do("GET", "/integrations?tags="+url.QueryEscape(`["env"]`), chief, nil).RequireFault(400, "AB01", "tags")
	h.Do("PUT", "/integrations/c", chief, `{"tags":{"env":"prod"}}`).OK()
	h.Do("PUT", "/integrations/a", chief, `{"tags":null}`).OK()
	if got := h.Do("GET", "/integrations?tags="+url.QueryEscape(`{"env":"prod"}`), chief, nil).OK(); got.At("total") != 2.0 {
		t.Errorf("after the changes: %s", got.Body)
	}
	for tags, field := range map[string]string{`{"a":7}`: "tags.a", `[]`: "tags", `{"":"x"}`: "tags"} {
		h.Do("PUT", "/integrations/b", chief, `{"tags":`+tags+`}`).RequireFault(400, "AB01", field)
	}
}
