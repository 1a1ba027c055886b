package scim

import (
	"context"
	"strings"
	"testing"

	"gateway/shared/identity/membership"
	"gateway/shared/resource"
)

// address is the stored address of a user.
func (p idp) address(id string) string {
	p.t.Helper()
	rec, ok, err := p.h.Resources.Get(context.Background(), org, membership.KindUser, id)
	if err != nil || !ok {
		p.t.Fatalf("%v %v", ok, err)
	}
	u, err := resource.Decode[membership.User](rec)
	if err != nil {
		p.t.Fatal(err)
	}
	return u.Email
}

// TestRenamesMoveTheAddressThatFollowedTheName covers every way to change userName.
func TestRenamesMoveTheAddressThatFollowedTheName(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	const emails = `"emails":[{"value":"ADDRESS","type":"work","primary":true}]`
	patch := func(ops string) string {
		return `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[` + ops + `]}`
	}
	for name, c := range map[string]struct{ made, method, body, want string }{
		"patch":               {"", "PATCH", patch(`{"op":"replace","path":"userName","value":"NEW"}`), "NEW"},
		"patch without path":  {"", "PATCH", patch(`{"op":"replace","value":{"userName":"NEW"}}`), "NEW"},
		"put":                 {"", "PUT", `{"userName":"NEW"}`, "NEW"},
		"patch, emails given": {emails, "PATCH", patch(`{"op":"replace","path":"userName","value":"NEW"}`), "NEW"},
		"patch of both":       {emails, "PATCH", patch(`{"op":"replace","path":"userName","value":"NEW"},{"op":"replace","path":"emails[type eq \"work\"].value","value":"OTHER"}`), "OTHER"},
		"patch of the rest":   {"", "PATCH", patch(`{"op":"replace","path":"name.givenName","value":"Ann"}`), "OLD"},
		"put of both":         {emails, "PUT", `{"userName":"NEW",` + strings.Replace(emails, "ADDRESS", "OLD", 1) + `}`, "OLD"},
	} {
		slug := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		old, renamed, other := slug+"-old@example.com", slug+"-new@example.com", slug+"-other@example.com"
		fill := strings.NewReplacer("OLD", old, "NEW", renamed, "OTHER", other, "ADDRESS", old).Replace
		more := ""
		if c.made != "" {
			more = "," + fill(c.made)
		}
		id := p.call(201, "POST", "/Users", `{"userName":"`+old+`"`+more+`}`).Text("id")
		p.call(200, c.method, "/Users/"+id, fill(c.body))
		if got := p.address(id); got != fill(c.want) {
			t.Errorf("%s: the address is %s, want %s", name, got, fill(c.want))
		}
	}
	// A name that is no address cannot take the address away without giving another.
	id := p.user("plain-old@example.com")
	p.call(400, "PATCH", "/Users/"+id, patch(`{"op":"replace","path":"userName","value":"plain"}`))
}

// TestUnknownPathsBelowScimAreRefusedInItsForm covers paths and methods that no route has.
func TestUnknownPathsBelowScimAreRefusedInItsForm(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	for _, c := range []struct {
		status       int
		method, path string
	}{
		{404, "GET", "/Nothing"}, {404, "POST", "/users"}, {404, "GET", "/Users/x/y/z"}, {404, "DELETE", "/v2/Users/x"}, {404, "GET", "/"}, {405, "PATCH", "/Users"}, {405, "POST", "/Users/x"}, {405, "DELETE", "/ServiceProviderConfig"}, {405, "GET", "/Bulk"},
	} {
		got := p.call(c.status, c.method, c.path, "")
		if got.Text("schemas", "0") != "urn:ietf:params:scim:api:messages:2.0:Error" || got.Text("detail") == "" {
			t.Errorf("%s %s: %s", c.method, c.path, got.Body)
		}
	}
	// Administration routes below the same path use the administration format.
	if got := h.Do("PATCH", at, chief, nil); got.Status != 405 || strings.Contains(string(got.Body), "schemas") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}
