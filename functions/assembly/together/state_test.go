package together_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"gateway/functions/auditlogs"
	"gateway/functions/configs"
	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/testkit/admintest"
)

func withConfigs(t testing.TB) *admintest.Installation {
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{configs.New(configs.Deps{CheckURL: func(raw, _ string) (*url.URL, error) { return url.Parse(raw) }}), auditlogs.New(audit.NewReader(d.Resources.Store(), time.Now))}
	})
}

// A config is created, changed twice and deleted; the audit log contains its states in between.
func TestAResourceAsItWas(t *testing.T) {
	t.Parallel()
	h := withConfigs(t)
	in := `"workspace_id":"` + h.One + `"`
	made := h.Do("POST", "/configs", admintest.AdminKey, `{"name":"first","config":{"provider":"openai","api_key":"sk-abcdefghijklmnopqrstuvwx"},`+in+`}`).OK()
	id, slug := made.Text("data", "id"), made.Text("data", "slug")
	at := map[string]time.Time{"before": time.Now().Add(-time.Hour)}
	mark := func(name string) { // times of the trail have milliseconds
		time.Sleep(2 * time.Millisecond)
		at[name] = time.Now()
		time.Sleep(2 * time.Millisecond)
	}
	mark("made")
	h.Do("PUT", "/configs/"+slug+"?workspace_id="+h.One, admintest.AdminKey, `{"name":"second"}`).OK()
	mark("named")
	h.Do("PUT", "/configs/"+slug+"?workspace_id="+h.One, admintest.AdminKey, `{"config":{"provider":"anthropic"}}`).OK()
	mark("changed")
	h.Do("DELETE", "/configs/"+slug+"?workspace_id="+h.One, admintest.AdminKey, nil).OK()
	h.Audit()
	read := func(when, kind string) admintest.Response {
		q := url.Values{"type": {kind}, "id": {id}}
		if when != "" {
			q.Set("at", at[when].UTC().Format("2006-01-02T15:04:05.000Z"))
		}
		return h.Do("GET", "/audit-logs/state?"+q.Encode(), admintest.AdminKey, nil)
	}
	if a := read("before", "configs"); a.Status != 404 {
		t.Errorf("before it was made: %d %s", a.Status, a.Body)
	}
	for _, c := range []struct{ when, name, provider string }{{"made", "first", "openai"}, {"named", "second", "openai"}, {"changed", "second", "anthropic"}} {
		for _, kind := range []string{"configs", "config", "CONFIG"} {
			a := read(c.when, kind).OK()
			if a.Text("name") != c.name || a.Text("resource", "provider") != c.provider || a.Text("workspace_id") != h.One || a.Text("slug") != slug || a.Text("type") != "config" || a.At("deleted") != false {
				t.Errorf("%s as %s: %s", c.when, kind, a.Body)
			}
			if strings.Contains(string(a.Body), "abcdefghijklmn") {
				t.Errorf("%s: the secret is shown", c.when)
			}
		}
	}
	if a := read("", "configs").OK(); a.At("deleted") != true || len(a.At("resource").(map[string]any)) != 0 {
		t.Errorf("after its end: %s", a.Body)
	}
	for _, q := range []string{"type=workspaces&id=" + id, "type=configs&id=" + h.One, "type=configs&id=../x", "type=configs&id=" + strings.Repeat("x", 200)} {
		if a := h.Do("GET", "/audit-logs/state?"+q, admintest.AdminKey, nil); a.Status != 404 {
			t.Errorf("%s: %d %s", q, a.Status, a.Body)
		}
	}
	for _, q := range []string{"", "type=configs", "id=" + id, "type=&id=" + id, "type=configs&id=" + id + "&at=yesterday", "type=configs&id=" + strings.Repeat("x", 300), "type=configs&id=%ff"} {
		if a := h.Do("GET", "/audit-logs/state?"+q, admintest.AdminKey, nil); a.Status != 400 {
			t.Errorf("%q: %d %s", q, a.Status, a.Body)
		}
	}
	if a := h.Do("GET", "/audit-logs/state?type=configs&id="+id, admintest.OtherAdmin, nil); a.Status != 404 {
		t.Errorf("another organization reads %d %s", a.Status, a.Body)
	}
}
