package assembly_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/admin"
	"gateway/shared/app/console"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/identity/membership"
	"gateway/shared/relay/admission"
	"gateway/shared/resource"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
)

// rightsWorld is an installation in which one actor tries to gain permissions. Everything
// that a response shows the actor is in its purse, and it makes calls with all of it.
type rightsWorld struct {
	*installation
	rng         *rand.Rand
	authorize   admin.Authenticate
	space       string            // the workspace where the actor has rights
	users       map[string]string // ids by name
	keys        []string          // ids of keys that exist
	initial     map[string]identity.Rank
	credentials []string // credentials that the actor knows
	scim        []string // tokens of identity providers that it knows
	invites     []string
	owned       bool // a sign-in is in its hands
	n           int
	callsServed int
}

const evilDomain = "evil.example.com"

var rightsRoles = []string{"owner", "org-admin", "admin", "manager", "member"}

func newRightsWorld(t *testing.T, seed uint64) *rightsWorld {
	t.Helper()
	in := install(t, nil)
	in.checked = nil // other tests compare responses with the document
	w := &rightsWorld{installation: in, rng: rand.New(rand.NewPCG(seed, 28)), authorize: console.Authenticate(in.core), users: map[string]string{}, initial: map[string]identity.Rank{}}
	w.space = in.must("GET", "/workspaces/first-space", rootKey, "")["id"].(string)
	for _, role := range rightsRoles {
		top, inside := "member", role
		if role == "owner" || role == "org-admin" {
			top, inside = "admin", "admin"
		}
		w.users[role] = in.user(rootKey, role+"@example.com", top, w.space, inside)
		if role == "owner" {
			in.own(w.users[role])
		}
	}
	for _, path := range []string{"workspace/service", "organisation/service"} {
		kind := identity.KeyType(strings.ReplaceAll(path, "/", "-"))
		w.keys = append(w.keys, w.create(rootKey, path, identity.ScopesFor(kind), "")["id"].(string))
	}
	for _, role := range rightsRoles { // uncollected, and of the user's own making
		scopes := []string{"completions.write", "configs.list"}
		inRole := identity.NewScopeSet(membership.ScopesOf(strings.TrimPrefix(role, "org-"))...)
		waiting := slices.DeleteFunc(identity.ScopesFor(identity.WorkspaceUser), func(s string) bool { return !inRole.Has(s) })
		w.keys = append(w.keys, w.create(rootKey, "workspace/user", waiting, w.users[role])["id"].(string))
		if role != "member" {
			w.keys = append(w.keys, w.create(w.session(role+"@example.com"), "workspace/user", scopes, "")["id"].(string))
		}
	}
	w.verify("example.com")
	w.verify(evilDomain)
	w.invites = append(w.invites, in.must("POST", "/invites", rootKey, `{"email":"later@example.com","role":"admin"}`)["id"].(string))
	return w
}

func (w *rightsWorld) verify(domain string) {
	org := store.Scope{Org: "first"}
	d := sso.Domain{Domain: domain, Challenge: "c", VerifiedAt: "2026-01-01T00:00:00Z"}
	body, err := json.Marshal(d)
	if err == nil {
		rec := resource.Record{Scope: org, Kind: sso.KindDomain, ID: resource.NewID(), Slug: sso.Slug(domain), Name: domain, Status: "active", Body: body, Looked: true}
		err = w.core.Resources.Change(context.Background(), org, func(tx *resource.Tx) error { return tx.Create(&rec) })
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *rightsWorld) create(by, path string, scopes []string, user string) map[string]any {
	w.t.Helper()
	_, out := w.post(by, path, scopes, user)
	if out["id"] == nil {
		w.t.Fatalf("create %s: %v", path, out)
	}
	return out
}

func (w *rightsWorld) post(by, path string, scopes []string, user string) (int, map[string]any) {
	body := map[string]any{"name": "k", "scopes": scopes}
	if path != "organisation/service" {
		body["workspace_id"] = w.space
	}
	if user != "" {
		body["user_id"] = user
	}
	return w.call("POST", "/api-keys/"+path, by, body)
}

// call makes a call and takes what its response shows.
func (w *rightsWorld) call(method, path, by string, body any) (int, map[string]any) {
	w.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	if body == nil {
		raw = nil
	}
	status, answer := w.request(method, path, by, raw)
	out := map[string]any{}
	_ = json.Unmarshal(answer, &out) // none of 204
	if status >= 500 {
		w.t.Errorf("%s %s: %d %s", method, path, status, answer)
	}
	return status, out
}

// bound is what an actor starts with.
type bound struct {
	grantor authority.Grantor
	top     bool // reaches the organization
}

// act is one random call with a random credential of the purse.
func (w *rightsWorld) act() string {
	by := w.any(w.credentials)
	scopesOf := func(t identity.KeyType) []string {
		all := identity.ScopesFor(t)
		w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if w.rng.IntN(2) == 0 {
			return []string{w.any([]string{"workspace_users.update", "organisation_users.update", "logs.view", "mcp.invoke", "completions.write", "organisation_settings.update", "configs.list"})}
		}
		return all[:1+w.rng.IntN(3)]
	}
	user := func() string { return w.users[w.any(rightsRoles)] }
	role := func() string { return w.any([]string{"admin", "manager", "member"}) }
	w.n++
	email := fmt.Sprintf("a%d@%s", w.n, evilDomain)
	var name string
	var status int
	var out map[string]any
	do := func(method, path string, body any) {
		name = method + " " + path
		status, out = w.call(method, path, by, body)
	}
	switch w.rng.IntN(24) {
	case 0, 1:
		kind := w.any([]string{"workspace/service", "organisation/service"})
		name = "POST " + kind
		status, out = w.post(by, kind, scopesOf(identity.KeyType(strings.ReplaceAll(kind, "/", "-"))), "")
	case 2, 3:
		name = "POST workspace/user"
		status, out = w.post(by, "workspace/user", scopesOf(identity.WorkspaceUser), user())
	case 4:
		do("POST", "/api-keys/"+w.any(w.keys)+"/rotate", map[string]any{})
	case 5:
		do("POST", "/api-keys/"+w.any(w.keys)+"/collect", nil)
	case 6:
		do("PUT", "/api-keys/"+w.any(w.keys), map[string]any{"scopes": scopesOf(identity.WorkspaceService)})
	case 7, 8:
		body := map[string]any{"email": email, "role": w.any([]string{"admin", "member"}), "workspaces": []any{map[string]any{"id": w.space, "role": role()}}}
		if w.rng.IntN(2) == 0 {
			body["workspace_api_key_details"] = map[string]any{"scopes": scopesOf(identity.WorkspaceUser)}
		}
		if do("POST", "/invites", body); status == 200 {
			w.accept(out["invite_link"].(string), email)
		}
	case 9:
		if do("POST", "/invites/"+w.any(w.invites)+"/resend", nil); status == 200 {
			w.accept(out["inviteLink"].(string), "")
		}
	case 10:
		do("PUT", "/users/"+user(), map[string]any{"role": w.any([]string{"admin", "member"})})
	case 11:
		do("PUT", "/users/"+user()+"/ownership", map[string]any{"owner": true})
	case 12:
		do("PUT", "/workspaces/"+w.space+"/users/"+user(), map[string]any{"role": role()})
	case 13:
		do("POST", "/workspaces/"+w.space+"/users", map[string]any{"users": []any{map[string]any{"id": user(), "role": role()}}})
	case 14:
		do("POST", "/scim/tokens", map[string]any{"name": fmt.Sprint("t", w.n)})
		if token, ok := out["token"].(string); ok {
			w.scim = append(w.scim, token)
		}
	case 15, 16:
		w.provision(user(), email)
		return "scim"
	case 17:
		do("POST", "/scim/workspaces", map[string]any{"workspace_id": w.space, "role": role(), "scim_group_name": fmt.Sprint("g", w.n)})
	case 18:
		if do("PUT", "/admin/organisation/settings", map[string]any{"auth_settings": map[string]any{"jwks": jwksOf()}}); status == 200 {
			w.credentials = append(w.credentials, w.token("owner@example.com"), w.token("nobody@example.com"))
		}
	case 19:
		do("PUT", "/admin/organisation/settings", map[string]any{"security_settings": map[string]any{"managersManageWorkspace": true, "membersWriteConfigs": true}})
	case 20:
		do("POST", "/auth/sso-configurations", map[string]any{"name": fmt.Sprint("s", w.n), "issuer": "https://login.evil.example.com", "client_id": "c", "client_secret": "s"})
		w.owned = w.owned || status == 200
	case 22: // the token of a deployment opens nothing
		if do("POST", "/deployments", map[string]any{"name": fmt.Sprint("d", w.n), "type": w.any([]string{"production", "non-production"})}); status == 200 {
			w.credentials = append(w.credentials, out["token"].(string))
		}
	case 23: // nor does a client secret of realtime sessions, in the administration
		return w.mint(by)
	case 21:
		do("POST", "/workspaces", map[string]any{"name": fmt.Sprint("w", w.n), "users": []any{user()}})
	}
	if key, ok := out["key"].(string); ok && status == 200 {
		w.credentials = append(w.credentials, key)
		if id, ok := out["id"].(string); ok {
			w.keys = append(w.keys, id)
		}
	}
	if status < 300 {
		w.callsServed++
	}
	return fmt.Sprint(name, " ", status)
}

func (w *rightsWorld) any(of []string) string { return of[w.rng.IntN(len(of))] }

// mint makes a client secret of realtime sessions as the data plane does for a credential.
func (w *rightsWorld) mint(by string) string {
	room := admission.ClientSecretScope{Keys: w.core.Store.Table(store.Keys), Sealer: w.core.Sealer, Now: time.Now}
	secret := &admission.ClientSecretToken{Key: identity.HashToken(by), Until: time.Now().Add(time.Hour)}
	raw, err := room.Store(context.Background(), store.Scope{Org: "first", Workspace: w.space}, secret)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, opens := w.reach(raw); opens {
		w.t.Error("a client secret opens the administration")
	}
	w.credentials = append(w.credentials, raw)
	return "a client secret"
}

// accept accepts an invitation with a link that the actor has seen.
func (w *rightsWorld) accept(link, email string) {
	status, out := w.call("POST", "/invites/accept?token="+link[strings.LastIndexByte(link, '=')+1:], "", map[string]any{})
	if status != 200 {
		return
	}
	for _, k := range out["api_keys"].([]any) {
		w.credentials = append(w.credentials, k.(map[string]any)["key"].(string))
	}
	if email == "" {
		email = out["email"].(string)
	}
	w.credentials = append(w.credentials, w.session(email))
}

// provision makes a random call as an identity provider.
func (w *rightsWorld) provision(user, email string) {
	if len(w.scim) == 0 {
		return
	}
	by := w.any(w.scim)
	role := w.any([]string{"owner", "admin", "member"})
	doc := map[string]any{"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:User"}, "userName": email, "active": true, "emails": []any{map[string]any{"value": email, "primary": true}}, "roles": []any{map[string]any{"value": role}}}
	var status int
	switch w.rng.IntN(3) {
	case 0:
		status, _ = w.call("POST", "/scim/Users", by, doc)
	case 1:
		status, _ = w.call("PUT", "/scim/Users/"+user, by, doc)
	default:
		status, _ = w.call("PATCH", "/scim/Users/"+user, by, map[string]any{"schemas": []string{"urn:ietf:params:scim:api:messages:2.0:PatchOp"}, "Operations": []any{map[string]any{"op": "replace", "path": "roles", "value": []any{map[string]any{"value": role}}}}})
	}
	if status < 300 {
		w.callsServed++
	}
}

// reach returns the caller of a credential in the actor's workspace, as the administration
// knows it; ok is false for one that opens nothing there.
func (w *rightsWorld) reach(credential string) (admin.Caller, bool) {
	r := httptest.NewRequest("GET", "/v1/workspaces/"+w.space+"/users", nil)
	r.Header.Set("x-gateway-api-key", credential)
	c, err := w.authorize(context.Background(), r, "id")
	return c, err == nil
}

// exceeds returns what a caller has beyond a limit.
func exceeds(c admin.Caller, b bound) string {
	if c.OfOrganisation() && !b.top {
		return "reaches the organization"
	}
	if c.Rank.IsHigherThan(b.grantor.Rank) {
		return "has the rank " + string(c.Rank)
	}
	for _, s := range c.Scopes.(identity.ScopeSet).Sorted() {
		// What no key of the actor's type can hold is bounded by the rank.
		beyond := len(identity.ScopesFor(b.grantor.Type)) > 0 && !b.grantor.Type.Grantable(s)
		if !b.grantor.Scopes.Has(s) && !beyond {
			return "has the scope " + s
		}
	}
	return ""
}

// check reports what the actor has gained.
func (w *rightsWorld) check(b bound) string {
	credentials := slices.Clone(w.credentials)
	ids, err := w.core.Resources.List(context.Background(), store.Scope{Org: "first"}, membership.KindUser)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range ids {
		email := ids[i].Fields["email"]
		rank := membership.OrganisationRank(ids[i].Fields["role"])
		if was, known := w.initial[ids[i].ID]; rank.IsHigherThan(b.grantor.Rank) && rank.IsHigherThan(was) && (known || rank.IsHigherThan(identity.RankMember)) {
			return "made " + email + " " + string(rank)
		}
		if strings.HasSuffix(email, "@"+evilDomain) || w.owned {
			credentials = append(credentials, w.session(email))
		}
	}
	for _, credential := range credentials {
		if c, ok := w.reach(credential); ok {
			if more := exceeds(c, b); more != "" {
				return fmt.Sprintf("a %s of user %q: %s", c.Type, c.UserID, more)
			}
		}
	}
	return ""
}

func (w *rightsWorld) token(email string) string {
	t := golangjwt.NewWithClaims(golangjwt.SigningMethodRS256, golangjwt.MapClaims{"organisation_id": "first", "workspace_slug": "first-space", "scope": strings.Join(identity.ScopesFor(identity.SignedToken), " "), "exp": time.Now().Add(time.Hour).Unix(), "email_id": email})
	t.Header["kid"] = "k1"
	s, err := t.SignedString(signingKey())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// TestNoActorGainsPermissions plays random calls by one actor, with everything that the
// responses show it. Nothing that it can use, and no user, ever has a higher rank or other
// scopes than the actor began with.
//
//lane:property
func TestNoActorGainsPermissions(t *testing.T) {
	t.Parallel()
	session := func(role string) func(*rightsWorld) string {
		return func(w *rightsWorld) string { return w.session(role + "@example.com") }
	}
	key := func(path string, scopes ...string) func(*rightsWorld) string {
		return func(w *rightsWorld) string {
			if len(scopes) == 0 {
				scopes = identity.ScopesFor(identity.KeyType(strings.ReplaceAll(path, "/", "-")))
			}
			return w.create(rootKey, path, scopes, "")["key"].(string)
		}
	}
	by := func(role, path string) func(*rightsWorld) string {
		return func(w *rightsWorld) string {
			kind := identity.KeyType(strings.ReplaceAll(path, "/", "-"))
			held := identity.NewScopeSet(membership.ScopesOf(role)...)
			scopes := slices.DeleteFunc(identity.ScopesFor(kind), func(s string) bool { return role == "manager" && !held.Has(s) })
			return w.create(w.session(role+"@example.com"), path, scopes, "")["key"].(string)
		}
	}
	actors := map[string]func(*rightsWorld) string{
		"a member": session("member"), "a manager": session("manager"), "an admin of the workspace": session("admin"), "an organization admin": session("org-admin"),
		"a manager's service key": by("manager", "workspace/service"), "an organization admin's key": by("org-admin", "organisation/service"),
		"a key that invites":          key("organisation/service", "organisation_users.create", "organisation_users.update"),
		"a key of settings":           key("organisation/service", "organisation_settings.update", "organisation_settings.read"),
		"a key of keys":               key("workspace/service", "workspace_user_api_keys.create", "workspace_user_api_keys.rotate", "workspace_user_api_keys.update", "mcp.invoke"),
		"a key of members":            key("workspace/service", "workspace_users.create", "workspace_users.update"),
		"an organization key of keys": key("organisation/service", "organisation_service_api_keys.create", "organisation_service_api_keys.rotate", "workspace_service_api_keys.create", "workspace_service_api_keys.rotate"),
		"a key that makes workspaces": key("organisation/service", "workspaces.create"),
	}
	for name, begin := range actors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2) {
				w := newRightsWorld(t, seed)
				for role, id := range w.users {
					w.initial[id] = membership.OrganisationRank(map[string]string{"owner": "owner", "org-admin": "admin"}[role])
				}
				w.credentials = []string{begin(w)}
				c, ok := w.reach(w.credentials[0])
				if !ok {
					t.Fatal("the actor has no access")
				}
				b := bound{grantor: c.Grantor(), top: c.OfOrganisation()}
				var played []string
				for range 60 {
					played = append(played, w.act())
					if gained := w.check(b); gained != "" {
						t.Fatalf("seed %d: %s\nafter %s", seed, gained, strings.Join(played, "\n"))
					}
				}
				if name == "an organization admin" && w.callsServed < 10 {
					t.Errorf("seed %d: only %d calls were served, which tries nothing: %s", seed, w.callsServed, strings.Join(played, "\n"))
				}
			}
		})
	}
}

// TestRightsEndWithThoseOfTheirSponsor checks that keys, keys that keys created, tokens of
// identity providers and invitations have at no moment more permissions than their creator has then,
// whether that user was demoted or removed, and that another user can take them over.
func TestRightsEndWithThoseOfTheirSponsor(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"demoted", "removed"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			w := newRightsWorld(t, 1)
			user := w.users["org-admin"]
			by := w.session("org-admin@example.com")
			all := func(path string) []string {
				return identity.ScopesFor(identity.KeyType(strings.ReplaceAll(path, "/", "-")))
			}
			create := func(by, path string) map[string]any { return w.create(by, path, all(path), "") }
			keys := map[string]map[string]any{"an organization key": create(by, "organisation/service"), "a workspace key": create(by, "workspace/service")}
			first := keys["an organization key"]["key"].(string)
			keys["a key of a key"] = create(first, "organisation/service")
			keys["a workspace key of a key of a key"] = create(keys["a key of a key"]["key"].(string), "workspace/service")
			own := create(rootKey, "organisation/service")
			_, out := w.call("POST", "/scim/tokens", first, map[string]any{"name": "t"})
			token := out["token"].(string)
			_, out = w.call("POST", "/invites", first, map[string]any{"email": "next@example.com", "role": "admin"})
			link := out["invite_link"].(string)
			reach := func(of map[string]any) admin.Caller {
				c, ok := w.reach(of["key"].(string))
				if !ok {
					t.Fatalf("a key opens nothing any more")
				}
				return c
			}
			provision := func(email string) int {
				status, _ := w.call("POST", "/scim/Users", token, map[string]any{"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:User"}, "userName": email, "roles": []any{map[string]any{"value": "admin"}}})
				return status
			}
			for name, k := range keys {
				if c := reach(k); identity.RankWorkspaceAdmin.IsHigherThan(c.Rank) || c.Reduced {
					t.Errorf("%s begins with the rank %s", name, c.Rank)
				}
			}
			if status := provision("early@example.com"); status != 201 {
				t.Errorf("a new SCIM token: %d", status)
			}
			if end == "demoted" {
				w.must("PUT", "/users/"+user, rootKey, `{"role":"member"}`)
			} else if status, out := w.call("DELETE", "/users/"+user, rootKey, nil); status >= 300 {
				t.Fatalf("the user stays: %d %v", status, out)
			}
			within := bound{grantor: authority.Grantor{Rank: identity.RankMember, Scopes: identity.NewScopeSet(membership.ScopesOf("member")...)}, top: true}
			if end == "demoted" { // inside its workspace it remains what it is there
				within.grantor = authority.Grantor{Rank: identity.RankWorkspaceAdmin, Scopes: identity.NewScopeSet(membership.ScopesOf("admin")...)}
			}
			for name, k := range keys {
				if more := exceeds(reach(k), within); more != "" {
					t.Errorf("%s of a %s user %s", name, end, more)
				}
			}
			if c := reach(own); c.Rank != identity.RankOwner || c.Reduced {
				t.Errorf("a key of the installation has the rank %s", c.Rank)
			}
			for _, c := range []struct {
				what, path string
				body       any
			}{{"invites", "/invites", map[string]any{"email": "x@example.com", "role": "admin"}}, {"creates a key", "/api-keys/organisation/service", map[string]any{"name": "k", "scopes": all("organisation/service")}}} {
				if status, out := w.call("POST", c.path, first, c.body); status != 403 || !strings.Contains(fmt.Sprint(out), "becomes the sponsor by rotating it") {
					t.Errorf("a key of a %s user %s: %d %v", end, c.what, status, out)
				}
			}
			if status := provision("late@example.com"); status != 403 {
				t.Errorf("the SCIM token of a %s user: %d", end, status)
			}
			if status, out := w.call("POST", "/invites/accept?token="+link[strings.LastIndexByte(link, '=')+1:], "", map[string]any{}); status != 403 {
				t.Errorf("the invitation of a %s user: %d %v", end, status, out)
			}
			id := keys["an organization key"]["id"].(string)
			owner := w.session("owner@example.com")
			taken := w.must("POST", "/api-keys/"+id+"/rotate", owner, `{}`)
			if c := reach(taken); c.Rank != identity.RankOrganisationAdmin || c.Sponsor != w.users["owner"] || len(c.Scopes.(identity.ScopeSet)) != len(all("organisation/service")) {
				t.Errorf("a key that an owner took over has the rank %s, by %s", c.Rank, c.Sponsor)
			}
			if c := reach(keys["a key of a key"]); c.Rank.IsHigherThan(within.grantor.Rank) {
				t.Errorf("a key that nobody took over has the rank %s", c.Rank)
			}
		})
	}
}
