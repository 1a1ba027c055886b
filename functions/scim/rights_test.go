package scim

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// TestTokensGiveNoRoleAboveTheirs sends the role of an owner in every spelling that the protocol
// has for it, with the token of an admin.
func TestTokensGiveNoRoleAboveTheirs(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.SetCaller("admin", h.Caller(chief).As(identity.RankOrganisationAdmin))
	p := newProvider(t, h, "admin")
	id := p.user("ann@example.com")
	role := func() string {
		rec, ok, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org}, membership.KindUser, id)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		u, err := membership.DecodeUser(rec)
		if err != nil {
			t.Fatal(err)
		}
		return u.Role
	}
	const urn = "urn:ietf:params:scim:schemas:core:2.0:User"
	for _, op := range []string{
		`{"op":"replace","path":"roles","value":[{"value":"$"}]}`,
		`{"op":"Add","path":"Roles","value":[{"value":"$"}]}`,
		`{"op":"replace","path":"roles","value":"$"}`,
		`{"op":"replace","path":"roles[primary eq true].value","value":"$"}`,
		`{"op":"replace","path":"roles[value eq \"member\"].value","value":"$"}`,
		`{"op":"replace","path":"roles[value eq \"member\"]","value":{"value":"$"}}`,
		`{"op":"replace","path":"` + urn + `:roles","value":[{"value":"$"}]}`,
		`{"op":"replace","value":{"roles":[{"value":" $ "}]}}`,
		`{"op":"replace","value":{"ROLES":[{"Value":"$"}]}}`,
		`{"op":"replace","value":{"` + urn + `:roles":[{"value":"$"}]}}`,
		`{"op":"replace","value":{"` + urn + `":{"roles":[{"value":"$"}]}}}`,
		`{"op":"add","path":"roles","value":[{"value":"{\"value\":\"$\"}"}]}`,
		`{"op":"add","path":"roles","value":[{"value":"member"},{"value":"$"}]}`,
		`{"op":"replace","value":{"roles.value":"$"}}`,
		`{"op":"replace","path":"roles.value","value":"$"}`,
	} {
		for _, to := range []string{"owner", "OWNER"} {
			got := send(h, "PATCH", "/scim/Users/"+id, p.token, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`+strings.ReplaceAll(op, "$", to)+`]}`, nil)
			if now := role(); got.Status >= 500 || now == membership.Owner {
				t.Errorf("%s: %d %s, the role is %s", op, got.Status, got.Body, now)
			}
		}
	}
	for _, roles := range []string{`[{"value":"owner"}]`, `["owner"]`, `"owner"`, `{"value":"owner"}`, `[{"value":"member","primary":true},{"value":"Owner"}]`} {
		for _, call := range [][3]string{{"PUT", "/Users/" + id, "ann@example.com"}, {"POST", "/Users", "new@example.com"}} {
			got := send(h, call[0], "/scim"+call[1], p.token, fmt.Sprintf(`{"userName":%q,"roles":%s}`, call[2], roles), nil)
			if now := role(); got.Status >= 500 || now == membership.Owner || strings.Contains(string(got.Body), `"value":"owner"`) {
				t.Errorf("%s roles %s: %d %s, the role is %s", call[0], roles, got.Status, got.Body, now)
			}
		}
	}
	if newProvider(t, h, chief).patch("/Users/"+id, `{"op":"replace","path":"roles","value":[{"value":"owner"}]}`); role() != membership.Owner {
		t.Errorf("the token of an owner gives the role %s", role())
	}
}

// TestResourcesOfAnotherOrganizationAreMissing names users and groups of another organization in
// every place of the protocol.
func TestResourcesOfAnotherOrganizationAreMissing(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p, other := newProvider(t, h, chief), newProvider(t, h, admintest.OtherAdmin)
	user, group := other.call(201, "POST", "/Users", `{"userName":"eve@other.example"}`).Text("id"), other.group("Theirs")
	own := p.group("Ours", p.user("ann@example.com"))
	const ops = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[%s]}`
	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{404, "GET", "/Users/" + user, ""}, {404, "DELETE", "/Users/" + user, ""}, {404, "PUT", "/Users/" + user, `{"userName":"eve@example.com"}`},
		{404, "PATCH", "/Users/" + user, fmt.Sprintf(ops, `{"op":"replace","path":"active","value":false}`)},
		{404, "GET", "/Groups/" + group, ""}, {404, "DELETE", "/Groups/" + group, ""}, {404, "PUT", "/Groups/" + group, `{"displayName":"x"}`},
		{404, "PATCH", "/Groups/" + group, fmt.Sprintf(ops, `{"op":"replace","path":"displayName","value":"x"}`)},
		{400, "PATCH", "/Groups/" + own, fmt.Sprintf(ops, `{"op":"add","path":"members","value":[{"value":"`+user+`"}]}`)},
		{400, "PUT", "/Groups/" + own, `{"displayName":"Ours","members":[{"value":"` + user + `"}]}`},
		{400, "POST", "/Groups", `{"displayName":"More","members":[{"value":"` + user + `"}]}`},
	} {
		p.call(c.status, c.method, c.path, c.body)
	}
	for _, filter := range []string{`id eq "` + user + `"`, `userName eq "eve@other.example"`, `emails co "other"`, `not (userName eq "x")`, `id pr`} {
		if got := p.call(200, "GET", "/Users?filter="+strings.NewReplacer(" ", "%20", `"`, "%22").Replace(filter), ""); strings.Contains(string(got.Body), user) {
			t.Errorf("%s: %s", filter, got.Body)
		}
	}
	if got := other.call(200, "GET", "/Users/"+user, ""); got.At("active") != true || other.call(200, "GET", "/Groups/"+group, "").Text("displayName") != "Theirs" {
		t.Errorf("another organization has changed it: %s", got.Body)
	}
}
