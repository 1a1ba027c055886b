package assembly_test

import (
	"context"
	"fmt"
	"testing"

	"gateway/shared/app/telemetry"
	"gateway/shared/store"
)

// TestContentStopsWithTheRightsOfItsAuthor takes the right to read all logs from whoever chose the
// address of a destination of telemetry, in each way in which it can be lost. No change by others
// resumes the content without the address.
func TestContentStopsWithTheRightsOfItsAuthor(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.checked = nil
	space := in.must("GET", "/workspaces/first-space", rootKey, "")["id"].(string)
	n := 0
	manager := func() (id, session string) {
		n++
		email := fmt.Sprintf("m%d@example.com", n)
		id = in.user(rootKey, email, "member", space, "manager")
		return id, in.session(email)
	}
	service := func(scopes string) (id, key string) {
		made := in.must("POST", "/api-keys/workspace/service", rootKey, fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["workspace_telemetry.create",%s]}`, space, scopes))
		return made["id"].(string), made["key"].(string)
	}
	sent := func(of store.Scope, id string) bool {
		t.Helper()
		targets, err := telemetry.Exporter(in.core).Directory.Targets(context.Background(), of)
		if err != nil {
			t.Fatal(err)
		}
		for i := range targets {
			if targets[i].ID == id {
				return targets[i].Content
			}
		}
		t.Fatal("the destination gets nothing at all")
		return false
	}
	in.must("PUT", "/admin/organisation/settings", rootKey, `{"security_settings":{"managersViewLogs":true,"managersViewAllData":true}}`)
	for name, c := range map[string]struct {
		author func() (id, credential string)
		lose   func(id string)
	}{
		"a manager is demoted": {manager, func(id string) { in.must("PUT", "/workspaces/"+space+"/users/"+id, rootKey, `{"role":"member"}`) }},
		"a manager leaves":     {manager, func(id string) { in.must("DELETE", "/workspaces/"+space+"/users/"+id, rootKey, "") }},
		"a key is deleted":     {func() (string, string) { return service(`"logs.view"`) }, func(id string) { in.must("DELETE", "/api-keys/"+id, rootKey, "") }},
		"a key reads no logs":  {func() (string, string) { return service(`"logs.view"`) }, func(id string) { in.must("PUT", "/api-keys/"+id, rootKey, `{"scopes":["completions.write"]}`) }},
		"settings change": {manager, func(string) {
			in.must("PUT", "/admin/organisation/settings", rootKey, `{"security_settings":{"managersViewLogs":false}}`)
		}},
	} {
		id, credential := c.author()
		in.must("PUT", "/admin/organisation/settings", rootKey, `{"security_settings":{"managersViewLogs":true,"membersViewLogs":false}}`)
		of := store.Scope{Org: "first", Workspace: space}
		made := in.must("POST", "/telemetry-destinations", credential, fmt.Sprintf(`{"name":%q,"endpoint":"https://c.example.com","include_content":true,"workspace_id":%q}`, name, space))["id"].(string)
		if !sent(of, made) {
			t.Errorf("%s: no content before", name)
		}
		if c.lose(id); sent(of, made) {
			t.Errorf("%s: content is still sent", name)
		}
		for _, body := range []string{`{"name":"renamed"}`, `{"status":"disabled"}`, `{"status":"active"}`, `{"headers":"a=b"}`, `{"signals":["traces"]}`} {
			if in.must("PUT", "/telemetry-destinations/"+made, rootKey, body); body != `{"status":"disabled"}` && sent(of, made) {
				t.Errorf("%s: content is sent again after %s", name, body)
			}
		}
		if status, got := in.request("PUT", "/telemetry-destinations/"+made, rootKey, []byte(`{"include_content":true}`)); status != 400 {
			t.Errorf("%s: content is turned on without the address: %d %s", name, status, got)
		}
		in.must("PUT", "/telemetry-destinations/"+made, rootKey, `{"include_content":true,"endpoint":"https://c.example.com"}`)
		if !sent(of, made) {
			t.Errorf("%s: no content after an owner confirmed the address", name)
		}
	}
	org := store.Scope{Org: "first"}
	made := in.must("POST", "/telemetry-destinations", rootKey, `{"name":"all","endpoint":"https://c.example.com","include_content":true}`)["id"].(string)
	if !sent(org, made) {
		t.Error("the organization's destination gets no content")
	}
}
