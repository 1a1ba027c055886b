package assembly_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/identity"
)

// TestOwnersWhoSavedIdentitySourcesStayOwners checks that nobody who controls an identity
// provider, or the keys of signed tokens, and so can sign in as any owner, stops being an owner
// before another owner has saved or removed that configuration.
func TestOwnersWhoSavedIdentitySourcesStayOwners(t *testing.T) {
	t.Parallel()
	const configurations, settings = "/auth/sso-configurations", "/admin/organisation/settings"
	connection := map[string]any{"name": "Corporate", "issuer": "https://login.example.com", "client_id": "c", "client_secret": "s"}
	keys := map[string]any{"auth_settings": map[string]any{"jwks": jwksOf()}}
	noKeys := map[string]any{"auth_settings": map[string]any{"jwks": nil}}
	w := newRightsWorld(t, 1)
	w.own(w.users["org-admin"])
	first, second := w.session("owner@example.com"), w.session("org-admin@example.com")
	call := func(method, path, by string, body any) map[string]any {
		t.Helper()
		status, out := w.call(method, path, by, body)
		if status >= 300 {
			t.Fatalf("%s %s: %d %v", method, path, status, out)
		}
		return out
	}
	key := w.create(first, "organisation/service", identity.ScopesFor(identity.OrganisationService), "")["key"].(string)
	user := "/users/" + w.users["owner"]
	demotion := map[string]any{"owner": false}
	var id string
	save := func(by string) { id = call("POST", configurations, by, connection)["id"].(string) }
	for _, c := range []struct {
		name          string
		save, release func()
		refused       string
	}{
		{"a configuration, saved again", func() { save(first) }, func() { call("PUT", configurations+"/"+id, second, map[string]any{"name": "Other"}) }, `SSO configuration "Corporate"`},
		{"a configuration, deleted", func() { save(first) }, func() { call("DELETE", configurations+"/"+id, first, nil) }, `SSO configuration "Corporate"`},
		{"a configuration of a key", func() { save(key) }, func() { call("DELETE", configurations+"/"+id, second, nil) }, `SSO configuration "Corporate"`},
		{"keys, saved again", func() { call("PUT", settings, first, keys) }, func() { call("PUT", settings, second, keys) }, "auth_settings"},
		{"keys, removed", func() { call("PUT", settings, first, keys) }, func() { call("PUT", settings, first, noKeys) }, "auth_settings"},
	} {
		c.save()
		call("PUT", settings, second, map[string]any{"request_logging": map[string]any{"mode": "metrics"}}) // changes nobody's part
		for _, d := range []struct {
			method, path string
			body         any
		}{{"PUT", user + "/ownership", demotion}, {"DELETE", user, nil}} {
			if status, out := w.call(d.method, d.path, second, d.body); status != http.StatusConflict || !strings.Contains(fmt.Sprint(out), c.refused) {
				t.Errorf("%s: %s %s: %d %v", c.name, d.method, d.path, status, out)
			}
		}
		c.release()
		call("PUT", user+"/ownership", second, demotion)
		call("PUT", user+"/ownership", second, map[string]any{"owner": true})
	}
	call("DELETE", user, second, nil)
}
