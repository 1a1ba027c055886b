package scim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// idp is an identity provider of an organization.
type idp struct {
	t     *testing.T
	h     *admintest.Installation
	token string
}

func newProvider(t *testing.T, h *admintest.Installation, admin string) idp {
	return idp{t, h, newToken(h, admin)}
}

// call makes a call that has to get a status.
func (p idp) call(status int, method, path, body string) admintest.Response {
	p.t.Helper()
	got := send(p.h.For(p.t), method, "/scim"+path, p.token, body, nil)
	if got.Status != status {
		p.t.Fatalf("%s %s: %d %s", method, path, got.Status, got.Body)
	}
	return got
}

func (p idp) user(email string) string {
	p.t.Helper()
	return p.call(201, "POST", "/Users", fmt.Sprintf(`{"userName":%q}`, email)).Text("id")
}

func (p idp) group(name string, members ...string) string {
	p.t.Helper()
	return p.call(201, "POST", "/Groups", fmt.Sprintf(`{"displayName":%q,"members":[%s]}`, name, valuesOf(members))).Text("id")
}

func valuesOf(ids []string) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = fmt.Sprintf(`{"value":%q}`, id)
	}
	return strings.Join(out, ",")
}

func (p idp) patch(path, ops string) admintest.Response {
	p.t.Helper()
	return p.call(200, "PATCH", path, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`+ops+`]}`)
}

func (p idp) add(group string, ids ...string) {
	p.t.Helper()
	p.patch("/Groups/"+group, `{"op":"add","path":"members","value":[`+valuesOf(ids)+`]}`)
}

func (p idp) remove(group, id string) {
	p.t.Helper()
	p.patch("/Groups/"+group, fmt.Sprintf(`{"op":"remove","path":"members[value eq \"%s\"]"}`, id))
}

func (p idp) active(id string, yes bool) {
	p.t.Helper()
	p.patch("/Users/"+id, fmt.Sprintf(`{"op":"replace","path":"active","value":%v}`, yes))
}

// wantRole holds the membership of a user against a role, "" for none.
func (p idp) wantRole(what, workspace, user, role string) {
	p.t.Helper()
	rec, ok, err := p.h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org, Workspace: workspace}, membership.KindMember, user)
	if err != nil {
		p.t.Fatal(err)
	}
	got := ""
	if ok && !rec.Archived() {
		m, err := membership.DecodeMembership(rec)
		if err != nil {
			p.t.Fatal(err)
		}
		got = m.Role
	}
	if got != role {
		p.t.Errorf("%s: the role is %q, want %q", what, got, role)
	}
}

var org = store.Scope{Org: admintest.Org}

// change works on the store as another part of the gateway would.
func (p idp) change(f func(tx *resource.Tx) error) {
	p.t.Helper()
	if err := p.h.Resources.Change(context.Background(), org, f); err != nil {
		p.t.Fatal(err)
	}
}

// join makes a user a member by hand.
func (p idp) join(user, workspace, role string) {
	p.t.Helper()
	p.change(func(tx *resource.Tx) error {
		rec, u, _, err := membership.ByID(tx, org, user)
		if err != nil {
			return err
		}
		_, err = membership.Join(tx, &rec, u, workspace, role, "test")
		return err
	})
}

// key gives a user a key in a workspace.
func (p idp) key(user, workspace string) (raw string) {
	p.t.Helper()
	p.change(func(tx *resource.Tx) (err error) {
		rec, _, _, err := membership.ByID(tx, org, user)
		if err != nil {
			return err
		}
		_, raw, err = membership.CreateUserKey(tx, p.h.Resources, nil, store.Scope{Org: admintest.Org, Workspace: workspace}, &rec, nil, identity.RankOwner, "test")
		return err
	})
	return raw
}

func (p idp) opens(raw string) bool {
	p.t.Helper()
	_, ok, err := p.h.Store.Table(store.Keys).Get(context.Background(), identity.CredentialKey(identity.SecretOf(raw)), true)
	if err != nil {
		p.t.Fatal(err)
	}
	return ok
}

func (p idp) workspace(name string) (rec resource.Record, ok bool) {
	p.t.Helper()
	for _, list := range []func(context.Context, store.Scope, resource.Kind) ([]resource.Row, error){p.h.Resources.List, p.h.Resources.ListArchived} {
		rows, err := list(context.Background(), org, tenant.KindWorkspace)
		if err != nil {
			p.t.Fatal(err)
		}
		for i := range rows {
			if rows[i].Name == name {
				rec, ok, err = p.h.Resources.Get(context.Background(), org, tenant.KindWorkspace, rows[i].ID)
				if err != nil {
					p.t.Fatal(err)
				}
				return rec, ok
			}
		}
	}
	return rec, false
}

func TestStoppedUsersLoseAndGetBack(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	ann := p.user("ann@example.com")
	p.join(ann, h.One, "manager")
	p.join(ann, h.Two, "member")
	var keys []string
	for range 7 { // more than one change takes
		keys = append(keys, p.key(ann, h.One))
	}
	gone := p.key(ann, h.Two)
	p.change(func(tx *resource.Tx) error { // a revoked one
		rows, err := tx.List(store.Scope{Org: admintest.Org, Workspace: h.Two}, identity.KindKey)
		if err != nil {
			return err
		}
		rec, _, err := tx.Get(store.Scope{Org: admintest.Org, Workspace: h.Two}, identity.KindKey, rows[0].ID)
		if err != nil {
			return err
		}
		return identity.Retire(tx, &rec)
	})
	var session string
	p.change(func(tx *resource.Tx) (err error) {
		session, err = signin.Begin(tx, &signin.Session{Org: admintest.Org, User: ann, Method: signin.ByOIDC})
		return err
	})
	p.active(ann, false)
	p.wantRole("stopped", h.One, ann, "")
	for _, k := range keys {
		if p.opens(k) {
			t.Fatal("a key of a stopped user opens")
		}
	}
	l := resource.NewLoader(h.Resources)
	if _, _, err := signin.New(l, h.Resources).Find(t.Context(), session); err == nil {
		t.Error("a session of a stopped user is there")
	}
	v, err := l.Fresh(t.Context(), admintest.Org)
	if err != nil {
		t.Fatal(err)
	}
	if id, member, err := (membership.Named{}).Member(t.Context(), v, store.Scope{Org: admintest.Org, Workspace: h.One}, "ann@example.com"); err != nil || id != ann || member {
		t.Errorf("a signed token speaks for a stopped user: %s %v %v", id, member, err)
	}
	p.active(ann, false) // again
	p.active(ann, true)
	p.wantRole("back", h.One, ann, "manager")
	p.wantRole("back", h.Two, ann, "member")
	for _, k := range keys {
		if !p.opens(k) {
			t.Fatal("a key did not come back")
		}
	}
	if p.opens(gone) {
		t.Error("a key came back that somebody else has ended")
	}
	if _, _, err := signin.New(l, h.Resources).Find(t.Context(), session); err == nil {
		t.Error("a session came back")
	}
	p.active(ann, false)
	p.call(204, "DELETE", "/Users/"+ann, "")
	if p.opens(keys[0]) {
		t.Error("a key outlived its user")
	}
	p.user("ann@example.com")
}

func TestGroupsThatMapThemselves(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	ann, bob := p.user("ann@example.com"), p.user("bob@example.com")
	team := p.group("ws-Team-role-member", ann)
	ws, ok := p.workspace("Team")
	if !ok {
		t.Fatal("no workspace was made")
	}
	p.wantRole("by the group", ws.ID, ann, "member")
	chiefs := p.group("WS-team-ROLE-Admin", ann, bob)
	p.wantRole("the higher of two", ws.ID, ann, "admin")
	p.wantRole("by the other", ws.ID, bob, "admin")
	p.remove(chiefs, ann)
	p.wantRole("the group that is left", ws.ID, ann, "member")
	raw := p.key(ann, ws.ID)
	p.remove(team, ann)
	if p.wantRole("no group", ws.ID, ann, ""); p.opens(raw) {
		t.Error("a key outlived the membership")
	}
	p.patch("/Groups/"+chiefs, `{"op":"replace","path":"displayName","value":"ws-Team-role-manager"}`)
	p.wantRole("another role by another name", ws.ID, bob, "manager")
	p.patch("/Groups/"+chiefs, `{"op":"replace","path":"displayName","value":"Chiefs"}`)
	p.wantRole("a name that says nothing", ws.ID, bob, "")
	p.add(team, bob)
	one := p.group("ws-One-role-manager", bob)
	p.wantRole("a workspace that was there", h.One, bob, "manager")
	p.call(204, "DELETE", "/Groups/"+one, "")
	if p.wantRole("the group is gone", h.One, bob, ""); func() bool { r, _ := p.workspace("One"); return r.Archived() }() {
		t.Error("a workspace that the group did not make was archived")
	}
	p.call(204, "DELETE", "/Groups/"+team, "")
	if p.wantRole("the group is gone", ws.ID, bob, ""); func() bool { r, _ := p.workspace("Team"); return !r.Archived() }() {
		t.Error("the workspace that the group made was not archived")
	}
	if got := h.Do("GET", at, chief, nil).OK(); got.At("total_count") != 0.0 {
		t.Errorf("mappings are left: %s", got.Body)
	}
}

func TestGroupsThatAreMapped(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	ann, bob, cat := p.user("ann@example.com"), p.user("bob@example.com"), p.user("cat@example.com")
	p.join(ann, h.One, "manager")
	first := h.Do("POST", at, chief, mapping(h.One, "member", named("Devs"))).OK()
	group := p.group("Devs", ann, bob) // the one that the mapping has named
	if group != first.Text("scim_group_id") {
		t.Fatal("the provider's group is another one")
	}
	p.wantRole("more by hand", h.One, ann, "manager")
	p.wantRole("by the group", h.One, bob, "member")
	second := h.Do("POST", at, chief, mapping(h.Two, "member", fmt.Sprintf(`"scim_group_id":%q`, group))).OK()
	p.wantRole("members join when it is mapped", h.Two, ann, "member")
	p.wantRole("members join when it is mapped", h.Two, bob, "member")
	p.remove(group, ann)
	p.wantRole("what there is by hand stays", h.One, ann, "manager")
	p.wantRole("the rest goes", h.Two, ann, "")
	h.Do("DELETE", at+"/"+second.Text("id"), chief, nil).OK()
	p.wantRole("a mapping less", h.Two, bob, "member")
	p.add(group, cat)
	p.wantRole("not mapped any more", h.Two, cat, "")
	p.remove(group, bob)
	p.wantRole("who stayed stays", h.Two, bob, "member")
	p.wantRole("and leaves what is mapped", h.One, bob, "")
	p.call(409, "PATCH", "/Groups/"+group, `{"Operations":[{"op":"replace","path":"displayName","value":"ws-Two-role-admin"}]}`)
	p.wantRole("a refused name changes nothing", h.One, cat, "member")
	p.call(204, "DELETE", "/Groups/"+group, "")
	p.wantRole("the group is gone", h.One, cat, "")
	p.wantRole("by hand", h.One, ann, "manager")
}

func TestStoppedUsersInGroups(t *testing.T) {
	t.Parallel()
	for _, provisions := range []bool{false, true} {
		h := newInstallation(t)
		h.SetSettings(tenant.Settings{Scim: tenant.Scim{GroupProvisions: provisions}})
		p := newProvider(t, h, chief)
		ann := p.user("ann@example.com")
		p.active(ann, false)
		group := p.group("ws-One-role-member", ann)
		if got := p.call(200, "GET", "/Users/"+ann, "").At("active"); got != provisions {
			t.Errorf("active is %v where groups provision: %v", got, provisions)
		}
		if !provisions {
			p.wantRole("stopped", h.One, ann, "")
			p.active(ann, true)
		}
		p.wantRole("back", h.One, ann, "member")
		p.call(204, "DELETE", "/Groups/"+group, "")
	}
}

func TestGroupsWrittenWithUsers(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.SetSettings(tenant.Settings{Scim: tenant.Scim{UserGroups: true, GroupPrefix: "gw:", RoleSeparator: "/"}})
	p := newProvider(t, h, chief)
	ann := p.user("ann@example.com")
	group := p.group("gw:One/manager", ann)
	p.wantRole("members of groups are not taken", h.One, ann, "")
	p.patch("/Users/"+ann, fmt.Sprintf(`{"op":"add","path":"groups","value":[{"value":%q}]}`, group))
	p.wantRole("by the user", h.One, ann, "manager")
	p.remove(group, ann)
	p.wantRole("not by the group", h.One, ann, "manager")
	p.call(400, "PUT", "/Users/"+ann, `{"userName":"ann@example.com","groups":[{"value":"nope"}]}`)
	p.call(200, "PUT", "/Users/"+ann, `{"userName":"ann@example.com"}`)
	p.wantRole("a PUT that says nothing", h.One, ann, "manager")
	p.call(200, "PUT", "/Users/"+ann, `{"userName":"ann@example.com","groups":[]}`)
	p.wantRole("out again", h.One, ann, "")
}

func TestInvitationsAreAcceptedWhenUsersAreMade(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	p.change(func(tx *resource.Tx) error {
		rec := &resource.Record{Scope: org, Kind: membership.KindInvite, ID: resource.NewID(), Status: "active"}
		form := &membership.Invite{Email: "ann@example.com", Role: membership.Admin, Workspaces: []membership.InvitedTo{{ID: h.One, Role: membership.Manager}}}
		if _, err := membership.PrepareInvite(tx, rec, form); err != nil {
			return err
		}
		raw, err := json.Marshal(form)
		if err != nil {
			return err
		}
		rec.Body = raw
		return tx.Create(rec)
	})
	got := p.call(201, "POST", "/Users", `{"userName":"Ann@example.com","name":{"givenName":"Ann"}}`)
	if got.Text("roles", "0", "value") != "admin" || got.Text("name", "givenName") != "Ann" {
		t.Errorf("%s", got.Body)
	}
	p.wantRole("by the invitation", h.One, got.Text("id"), "manager")
}

// No provider can access another organization: its resources look missing.
func TestProvidersReachTheirOwnOrganisationAlone(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p, other := newProvider(t, h, chief), newProvider(t, h, admintest.OtherAdmin)
	ann, group := p.user("ann@example.com"), p.group("Devs")
	nowhere := resource.NewID()
	for _, kind := range []string{"Users", "Groups"} {
		theirs := map[string]string{"Users": ann, "Groups": group}[kind]
		for method, body := range map[string]string{"GET": "", "PUT": `{"userName":"a@other.example","displayName":"x"}`, "PATCH": `{"Operations":[{"op":"add","path":"externalId","value":"x"}]}`, "DELETE": ""} {
			a, b := other.call(404, method, "/"+kind+"/"+theirs, body), other.call(404, method, "/"+kind+"/"+nowhere, body)
			if strings.ReplaceAll(string(a.Body), theirs, nowhere) != string(b.Body) {
				t.Errorf("%s tells a foreign one from a missing one: %s, %s", method, a.Body, b.Body)
			}
		}
		if got := other.call(200, "GET", "/"+kind, "").At("totalResults"); got != 0.0 {
			t.Errorf("%s: another organization lists %v", kind, got)
		}
	}
	other.call(400, "POST", "/Groups", fmt.Sprintf(`{"displayName":"x","members":[{"value":%q}]}`, ann))
	other.call(403, "GET", "/Users?organisation_id="+admintest.Org, "")
	p.call(200, "GET", "/Users/"+ann, "")
	for name, token := range map[string]string{"none": "", "another": "scim-" + strings.Repeat("A", 43), "a key": admintest.WorkspaceA, "cut": p.token[:20]} {
		got := send(h, "GET", "/scim/Users", token, "", nil)
		if got.Status != http.StatusUnauthorized || !strings.Contains(string(got.Body), "api:messages:2.0:Error") || got.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %d %v %s", name, got.Status, got.Header, got.Body)
		}
	}
	for _, path := range []string{at, "/scim/groups", "/scim/tokens"} { // a token of a provider opens nothing else
		if got := send(h, "GET", path, p.token, "", nil); got.Status != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
}

func TestTokensAreShownOnceAndTakenBack(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	made := h.Do("POST", "/scim/tokens", chief, `{"name":"Provider"}`).OK()
	p := idp{t, h, made.Text("token")}
	p.call(200, "GET", "/Users", "")
	list := h.Do("GET", "/scim/tokens", chief, nil).OK()
	if strings.Contains(string(list.Body), p.token) || !strings.Contains(string(list.Body), `"masked_token":"sc*******`) {
		t.Errorf("%s", list.Body)
	}
	h.Do("DELETE", "/scim/tokens/"+made.Text("id"), admintest.OtherAdmin, nil).RequireFault(404, "AB08", "")
	h.Do("DELETE", "/scim/tokens/"+made.Text("id"), chief, nil).OK()
	p.call(401, "GET", "/Users", "")
	for range maxTokens {
		newToken(h, chief)
	}
	h.Do("POST", "/scim/tokens", chief, `{"name":"One more"}`).RequireFault(409, "AB07", "")
}

func TestCallsOfProvidersAreRecorded(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	ann := p.user("ann@example.com")
	p.active(ann, false)
	p.call(400, "POST", "/Users", `{"userName":"x"}`)
	var got []string
	for _, e := range h.Audit() {
		if strings.HasPrefix(e.ResourceType, "scim_") {
			got = append(got, fmt.Sprint(e.ResourceType, " ", e.Action, " ", e.StatusCode))
		}
	}
	for _, want := range []string{"scim_tokens create 200", "scim_users create 201", "scim_users update 200", "scim_users create 400"} {
		if !slices.Contains(got, want) {
			t.Errorf("the audit log has no %s: %q", want, got)
		}
	}
}
