package admin_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// Members and query parameters that a route does not know are rejected by name.
func TestUnknownNamesAreRefused(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	id, slug := makeGadget(t, h, `{"name":"a"}`)
	for _, c := range []struct{ method, path, body, field, message string }{
		{"POST", "/gadgets", `{"name":"b","colr":"red"}`, "colr", `unknown field "colr"; did you mean color?`},
		{"POST", "/gadgets", `{"name":"b","zzz":1}`, "zzz", `unknown field "zzz"; known are name, slug, tags, color, size, parts, labels, setup, made, key`},
		{"POST", "/gadgets", `{"name":"b","version":1}`, "version", `unknown field "version"; known are `},
		{"POST", "/gadgets", `{"name":"b","setup":{"fast":true,"levle":"low"}}`, "setup.levle", `unknown field "levle"; did you mean level?`},
		{"PUT", "/gadgets/" + id, `{"sise":3}`, "sise", `unknown field "sise"; did you mean size?`},
		{"GET", "/gadgets?colour=red", "", "colour", `unknown query parameter "colour"; did you mean color?`},
		{"GET", "/gadgets/" + id + "?x=1", "", "x", `unknown query parameter "x"`},
		{"DELETE", "/gadgets/" + id + "?force=1", "", "force", `unknown query parameter "force"`},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		a := h.Do(c.method, c.path, admintest.WorkspaceA, body)
		if f := a.RequireFault(400, "AB01", c.field).Failure(); !strings.HasPrefix(f.Fields[c.field], c.message) {
			t.Errorf("%s %s %s: %q, want %q", c.method, c.path, c.body, f.Fields[c.field], c.message)
		}
	}
	// What a read responds with, and what repeats the path, is known to an update.
	for _, body := range []string{`{"size":3,"version":7,"id":"x","created_at":null,"object":"gadget"}`, `{"size":4,"anyName":"` + id + `"}`} {
		h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, body).OK()
	}
	h.Do("PUT", "/gadgets/"+slug, admintest.WorkspaceA, `{"size":5,"gadgetSlug":"`+slug+`"}`).OK()
	h.Do("GET", "/gadgets?organisation_id=&workspace_id="+h.One, admintest.WorkspaceA, nil).OK()
}

// A request with the header, or of an organization with the setting, has unknown names
// ignored.
func TestLenientRequestsMayHaveUnknownNames(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	send := func(lenient, body string) admintest.Response {
		r := httptest.NewRequest("POST", "/v1/gadgets?filter=1", strings.NewReader(body))
		r.Header.Set("x-gateway-api-key", admintest.WorkspaceA)
		r.Header.Set("content-type", "application/json")
		if lenient != "" {
			r.Header.Set("x-gateway-lenient", lenient)
		}
		return h.Send(r)
	}
	send("", `{"name":"a","colour":"red"}`).RequireFault(400, "AB01", "colour")
	send("false", `{"name":"a","colour":"red"}`).RequireFault(400, "AB01", "filter")
	send("maybe", `{"name":"a","colour":"red"}`).RequireFault(400, "AB01", "x-gateway-lenient")
	if a := send("true", `{"name":"a","colour":"red"}`).OK(); a.Header.Get("X-Gateway-Ignored-Fields") != "colour" {
		t.Error(a.Header)
	}
	h.SetSettings(tenant.Settings{Lenient: true})
	send("", `{"name":"b","colour":"red"}`).OK()
	send("false", `{"name":"c","colour":"red"}`).RequireFault(400, "AB01", "colour")
}
