package users

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

const chief = admintest.AdminKey

// box records mails.
type box struct {
	mu   sync.Mutex
	sent []notice.Mail
	fail error
}

func (b *box) Send(_ context.Context, m notice.Mail) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, m)
	return b.fail
}

func newInstallation(t testing.TB) (*admintest.Installation, *box) {
	b := &box{}
	return admintest.New(t, New(Deps{Mailer: b, PublicURL: "https://gateway.example.com/v1/"})), b
}

var org = store.Scope{Org: admintest.Org}

// addUser makes a user with a role, as a member of workspaces, and gives its id.
func addUser(t testing.TB, h *admintest.Installation, email, role string, workspaces ...string) string {
	t.Helper()
	var id string
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		u := &membership.User{Email: email, FirstName: "F", LastName: "L", Role: role}
		rec, err := membership.Create(tx, org, u, "test")
		if err != nil {
			return err
		}
		id = rec.ID
		for _, ws := range workspaces {
			if _, err := membership.Join(tx, rec, u, ws, membership.Member, "test"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// handKey makes a key of a user, which may hold one.
func handKey(t testing.TB, h *admintest.Installation, user, workspace string) (id string) {
	t.Helper()
	sc := store.Scope{Org: admintest.Org, Workspace: workspace}
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		if _, err := membership.CheckKeyOwner(tx, sc, user, "user_id"); err != nil {
			return err
		}
		rec, _, _, err := membership.ByID(tx, sc, user)
		if err != nil {
			return err
		}
		k, _, err := membership.CreateUserKey(tx, h.Resources, nil, sc, &rec, nil, identity.RankOwner, "test")
		if err == nil {
			id = k.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func keyLives(t testing.TB, h *admintest.Installation, workspace, id string) bool {
	t.Helper()
	sc := store.Scope{Org: admintest.Org, Workspace: workspace}
	rec, ok, err := h.Resources.Get(context.Background(), sc, identity.KindKey, id)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	var k identity.Key
	if err := json.Unmarshal(rec.Body, &k); err != nil {
		t.Fatal(err)
	}
	_, found, err := h.Store.Table(store.Keys).Get(context.Background(), identity.CredentialKey(k.Secret), true)
	if err != nil || found == rec.Archived() {
		t.Errorf("the key is archived: %v, and opens: %v, %v", rec.Archived(), found, err)
	}
	return found
}

func TestFamilyChecks(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	admintest.CheckFamily(t, h)
	admintest.BadBodies(t, h, "POST", "/users/invites", chief, `{"email":"ann@example.com","role":"admin"}`)
	id := addUser(t, h, "ann@example.com", membership.Member)
	admintest.BadBodies(t, h, "PUT", "/admin/users/"+id, chief, `{"role":"admin"}`)
	invite := h.Do("POST", "/invites", chief, `{"email":"bob@example.com","role":"admin"}`).OK().Text("id")
	for path, one := range map[string]string{"/admin/users/": id, "/users/invites/": invite} {
		for _, call := range [][2]string{{"GET", ""}, {"DELETE", ""}} {
			foreign, missing := h.Do(call[0], path+one, admintest.OtherAdmin, nil), h.Do(call[0], path+resource.NewID(), admintest.OtherAdmin, nil)
			if foreign.Status != 404 || foreign.Comparable() != missing.Comparable() {
				t.Errorf("%s %s: %s", call[0], path, foreign.Body)
			}
		}
	}
}

func TestUsersAreListedByRoleAndAddressInPages(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	owner, boss := addUser(t, h, "owner@example.com", membership.Owner), addUser(t, h, "boss@example.com", membership.Admin)
	ann := addUser(t, h, "Ann@Example.com", membership.Member, h.One)
	for query, want := range map[string]string{
		"": "ann boss owner", "?role=admin": "boss", "?role=owner": "owner", "?role=member": "ann", "?email=ANN@example.com": "ann", "?email=no@example.com": "",
		"?currentPage=1&pageSize=2": "owner", "?current_page=0&page_size=1": "ann",
	} {
		a := h.Do("GET", "/admin/users"+query, chief, nil).OK()
		var got []string
		for _, e := range a.At("data").([]any) {
			name, _, _ := strings.Cut(e.(map[string]any)["email"].(string), "@")
			got = append(got, name)
		}
		if strings.Join(got, " ") != want || a.Text("object") != "list" {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	a := h.Do("GET", "/users/"+ann, chief, nil).OK()
	if a.Text("object") != "user" || a.Text("first_name") != "F" || a.Text("email") != "ann@example.com" || fmt.Sprint(a.At("workspace_ids")) != "["+h.One+"]" {
		t.Errorf("%s", a.Body)
	}
	for _, id := range []string{owner, boss} {
		if n := len(h.Do("GET", "/users/"+id, chief, nil).OK().At("workspace_ids").([]any)); n != 2 {
			t.Errorf("somebody who runs the organization sees %d workspaces", n)
		}
	}
	if got := h.Do("GET", "/users", admintest.OtherAdmin, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("another organization lists %s", got.Body)
	}
}

func TestRolesOfUsersAreChanged(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	owner, ann := addUser(t, h, "owner@example.com", membership.Owner), addUser(t, h, "ann@example.com", membership.Member, h.One)
	put := func(id, body string) admintest.Response { return h.Do("PUT", "/admin/users/"+id, chief, body) }
	put(ann, `{"role":"member"}`).OK() // as it is
	put(ann, `{"role":"owner"}`).RequireFault(400, "AB01", "role")
	put(ann, `{}`).RequireFault(400, "AB01", "role")
	put(ann, `{"role":null}`).RequireFault(400, "AB01", "role")
	for _, role := range []string{"admin", "member"} {
		put(owner, `{"role":"`+role+`"}`).RequireFault(403, "AB03", "role")
	}
	if got := string(put(ann, `{"role":"admin"}`).OK().Body); got != "{}" {
		t.Errorf("answered %s", got)
	}
	// As an admin she may have keys where she is no member, and loses them with the role.
	own, other := handKey(t, h, ann, h.One), handKey(t, h, ann, h.Two)
	put(ann, `{"role":"member"}`).OK()
	if !keyLives(t, h, h.One, own) || keyLives(t, h, h.Two, other) {
		t.Error("the wrong keys died with the role")
	}
}

func TestRemovedUsersLoseMembershipsAndKeys(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	ann, bob := addUser(t, h, "ann@example.com", membership.Member, h.One, h.Two), addUser(t, h, "bob@example.com", membership.Member, h.One)
	var keys [][2]string
	for range 12 { // more than one change takes
		keys = append(keys, [2]string{h.One, handKey(t, h, ann, h.One)}, [2]string{h.Two, handKey(t, h, ann, h.Two)})
	}
	key := handKey(t, h, bob, h.One)
	h.Do("DELETE", "/admin/users/"+ann, chief, nil).OK()
	for _, k := range keys {
		if keyLives(t, h, k[0], k[1]) {
			t.Fatal("a key of a removed user lives")
		}
	}
	if !keyLives(t, h, h.One, key) {
		t.Error("a key of another user died")
	}
	for _, ws := range []string{h.One, h.Two} {
		if _, ok, err := h.Resources.Get(t.Context(), store.Scope{Org: admintest.Org, Workspace: ws}, membership.KindMember, ann); ok || err != nil {
			t.Errorf("a membership is left: %v", err)
		}
	}
	h.Do("GET", "/admin/users/"+ann, chief, nil).RequireFault(404, "AB08", "")
	addUser(t, h, "ann@example.com", membership.Member)
	changes := 0
	for _, e := range h.Audit() {
		if e.Action == "delete" && e.ResourceID == ann && e.StatusCode == 200 {
			changes++
		}
	}
	if changes != 1 {
		t.Errorf("%d audit records of the removal", changes)
	}
}

// Of two owners that are removed concurrently one remains, with everything it has.
func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	for range 5 {
		h, _ := newInstallation(t)
		a, b := addUser(t, h, "a@example.com", membership.Owner, h.One), addUser(t, h, "b@example.com", membership.Owner, h.One)
		var wg sync.WaitGroup
		status := make([]int, 2)
		for i, id := range []string{a, b} {
			wg.Go(func() { status[i] = h.Do("DELETE", "/admin/users/"+id, chief, nil).Status })
		}
		wg.Wait()
		if status[0]+status[1] != 200+403 {
			t.Errorf("statuses %v", status)
		}
		left := a
		if status[0] == 200 {
			left = b
		}
		h.Do("DELETE", "/admin/users/"+left, chief, nil).RequireFault(403, "AB03", "")
		got := h.Do("GET", "/admin/users/"+left, chief, nil).OK()
		_, member, err := h.Resources.Get(t.Context(), store.Scope{Org: admintest.Org, Workspace: h.One}, membership.KindMember, left)
		if got.Text("role") != "owner" || !member || err != nil {
			t.Errorf("the last owner: %s, member %v, %v", got.Body, member, err)
		}
	}
}

// Owners are made and changed over HTTP alone, from an organization without any.
func TestOwnershipIsGrantedAndTransferred(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	ann, bob := addUser(t, h, "ann@example.com", membership.Member, h.One), addUser(t, h, "bob@example.com", membership.Admin)
	owner := func(id string, is bool) admintest.Response {
		return h.Do("PUT", "/admin/users/"+id+"/ownership", chief, fmt.Sprintf(`{"owner":%t}`, is))
	}
	role := func(id, want string) {
		t.Helper()
		if got := h.Do("GET", "/users/"+id, chief, nil).OK().Text("role"); got != want {
			t.Errorf("the role is %s, want %s", got, want)
		}
	}
	owner(ann, false).RequireFault(400, "AB01", "owner")
	owner(ann, true).OK()
	owner(ann, true).RequireFault(400, "AB01", "owner")
	role(ann, "owner")
	owner(ann, false).RequireFault(403, "AB03", "")
	h.Do("DELETE", "/users/"+ann, chief, nil).RequireFault(403, "AB03", "")
	h.Do("PUT", "/users/"+ann, chief, `{"role":"member"}`).RequireFault(403, "AB03", "role")
	role(ann, "owner")
	h.Do("PUT", "/users/"+bob+"/ownership", chief, `{"owner":true}`).OK()
	owner(ann, false).OK()
	role(ann, "admin")
	role(bob, "owner")
	h.Do("DELETE", "/users/"+ann, chief, nil).OK()
	owner(ann, true).RequireFault(404, "AB08", "")
	h.Do("DELETE", "/users/"+bob, chief, nil).RequireFault(403, "AB03", "")

	h.Do("PUT", "/admin/users/"+bob+"/ownership", admintest.OtherAdmin, `{"owner":false}`).RequireFault(404, "AB08", "")
	role(bob, "owner")
	// An admin of the organization neither makes owners nor removes them; an owner does.
	caller := h.Caller(chief)
	caller.UserID, caller.Role = resource.NewID(), admin.Admin
	h.SetCaller("boss", caller)
	h.Do("PUT", "/users/"+bob+"/ownership", "boss", `{"owner":false}`).RequireFault(403, "AB03", "")
	h.Do("DELETE", "/users/"+bob, "boss", nil).RequireFault(403, "AB03", "")
	carl := addUser(t, h, "carl@example.com", membership.Member)
	caller.Role = admin.Owner
	h.SetCaller("boss", caller)
	h.Do("PUT", "/users/"+carl+"/ownership", "boss", `{"owner":true}`).OK()
	h.Do("DELETE", "/users/"+carl, "boss", nil).OK()
	admintest.BadBodies(t, h, "PUT", "/admin/users/"+bob+"/ownership", chief, `{"owner":true}`)
}

// Of two owners who both step down, or one steps down while the other is removed, one
// stays.
func TestTheLastOwnerRetainsTheRole(t *testing.T) {
	t.Parallel()
	for round := range 6 {
		h, _ := newInstallation(t)
		ids := []string{addUser(t, h, "a@example.com", membership.Owner), addUser(t, h, "b@example.com", membership.Owner)}
		var wg sync.WaitGroup
		status := make([]int, 2)
		for i, id := range ids {
			wg.Go(func() {
				if i == 1 && round%2 == 1 {
					status[i] = h.Do("DELETE", "/users/"+id, chief, nil).Status
				} else {
					status[i] = h.Do("PUT", "/users/"+id+"/ownership", chief, `{"owner":false}`).Status
				}
			})
		}
		wg.Wait()
		if status[0]+status[1] != 200+403 {
			t.Errorf("statuses %v", status)
		}
		if n := h.Do("GET", "/users?role=owner", chief, nil).OK().At("total"); n != 1.0 {
			t.Errorf("%v owners are left", n)
		}
	}
}

// tokenOf takes the token out of a link.
func tokenOf(t testing.TB, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, "https://gateway.example.com/v1/invites/accept?token=") {
		t.Fatalf("link %q: %v", link, err)
	}
	return u.Query().Get("token")
}

func invitation1(h *admintest.Installation, more string) string {
	return `{"email":"Ann@Example.com","role":"member","workspaces":[{"id":"` + admintest.OneSlug + `","role":"manager"},{"id":"` + h.Two + `","role":"member"}]` + more + `}`
}

func TestAnInvitationIsSentAndAcceptedOnce(t *testing.T) {
	t.Parallel()
	h, mails := newInstallation(t)
	made := h.Do("POST", "/admin/users/invites", chief, invitation1(h, `,"workspace_api_key_details":{"scopes":["completions.write"]}`)).OK()
	link, id := made.Text("invite_link"), made.Text("id")
	token := tokenOf(t, link)
	if len(mails.sent) != 1 || mails.sent[0].To[0] != "ann@example.com" || !strings.Contains(mails.sent[0].Text, link) || !strings.Contains(mails.sent[0].HTML, token) {
		t.Fatalf("mails: %+v", mails.sent)
	}
	a := h.Do("GET", "/users/invites/"+id, chief, nil).OK()
	if a.Text("status") != "pending" || a.Text("email") != "ann@example.com" || a.Text("workspaces", "0", "workspace_id") != h.One || a.Text("workspaces", "0", "role") != "manager" || a.At("accepted_at") != nil || a.Text("invited_by") == "" || a.Text("object") != "invite" {
		t.Errorf("%s", a.Body)
	}
	rec, _, err := h.Resources.Get(t.Context(), org, membership.KindInvite, id)
	if err != nil || strings.Contains(string(rec.Body), token) || strings.Contains(string(a.Body), token) {
		t.Errorf("the token is kept: %v %s", err, rec.Body)
	}
	// Looking at the page accepts nothing. It names inviter, organization, role and workspaces.
	for range 2 {
		page := h.Do("GET", "/invites/accept?token="+token, "", nil).OK()
		for _, want := range []string{"An administrator invites you, ann@example.com, to join <b>", "as member", `data-workspace="` + h.One + `"`, "as manager</li>", "get an API key for each", `data-base="https://gateway.example.com/v1"`} {
			if !strings.Contains(string(page.Body), want) {
				t.Errorf("the page lacks %s: %s", want, page.Body)
			}
		}
		if !strings.Contains(page.Header.Get("Content-Security-Policy"), "script-src 'nonce-") || page.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%v", page.Header)
		}
	}
	done := h.Do("POST", "/invites/accept?token="+token, "", `{"first_name":"Ann","last_name":"Lee"}`).OK()
	user := done.Text("user_id")
	if len(done.At("api_keys").([]any)) != 2 || len(done.Text("api_keys", "0", "key")) < 30 || done.Text("organisation_id") != admintest.Org {
		t.Fatalf("%s", done.Body)
	}
	for i, ws := range []string{h.One, h.Two} {
		if !keyLives(t, h, ws, done.Text("api_keys", fmt.Sprint(i), "id")) {
			t.Error("a key that was handed out opens nothing")
		}
	}
	u := h.Do("GET", "/users/"+user, chief, nil).OK()
	if u.Text("first_name") != "Ann" || u.Text("role") != "member" || len(u.At("workspace_ids").([]any)) != 2 {
		t.Errorf("%s", u.Body)
	}
	if a = h.Do("GET", "/users/invites/"+id, chief, nil).OK(); a.Text("status") != "accepted" || a.Text("accepted_at") == "" {
		t.Errorf("%s", a.Body)
	}
	for _, dead := range []string{token, "", strings.Repeat("x", 43)} {
		if page := h.Do("GET", "/invites/accept?token="+dead, "", nil); page.Status != 404 || !strings.Contains(string(page.Body), "no longer valid") || strings.Contains(string(page.Body), "<form") {
			t.Errorf("the page of a dead link: %s", page.Body)
		}
	}
	missing := h.Do("POST", "/invites/accept", "", `{"token":"`+strings.Repeat("x", 43)+`"}`).RequireFault(404, "AB08", "token")
	if again := h.Do("POST", "/users/invites/accept", "", `{"token":"`+token+`"}`); again.Comparable() != missing.Comparable() {
		t.Errorf("a used token: %s", again.Body)
	}
	h.Do("POST", "/invites/accept", "", nil).RequireFault(400, "AB01", "token")
	h.Do("POST", "/invites", chief, invitation1(h, "")).RequireFault(409, "AB07", "email") // a user
	log, err := json.Marshal(h.Audit())
	if err != nil || strings.Contains(string(log), token) || !strings.Contains(string(log), `"action":"accept"`) || !strings.Contains(string(log), user) {
		t.Errorf("the audit log: %v %s", err, log)
	}
}

func TestInvitationsEnd(t *testing.T) {
	t.Parallel()
	at := time.Now()
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	h := newInstallationAt(t, clock)
	post := func() admintest.Response { return h.Do("POST", "/invites", chief, invitation1(h, "")) }
	accept := func(link string) admintest.Response {
		return h.Do("POST", "/invites/accept", "", `{"token":"`+tokenOf(t, link)+`"}`)
	}
	first := post().OK()
	post().RequireFault(409, "AB07", "email")
	sent := h.Do("POST", "/invites/"+first.Text("id")+"/resend", chief, nil).OK().Text("inviteLink")
	accept(first.Text("invite_link")).RequireFault(404, "AB08", "token")

	mu.Lock()
	at = at.Add(membership.InviteTTL)
	mu.Unlock()
	accept(sent).RequireFault(404, "AB08", "token")
	if got := h.Do("GET", "/invites/"+first.Text("id"), chief, nil).OK().Text("status"); got != "expired" {
		t.Errorf("status %s", got)
	}
	second := post().OK() // an expired one is not in the way
	h.Do("POST", "/invites/"+first.Text("id")+"/resend", chief, nil).RequireFault(409, "AB07", "id")
	if got := string(h.Do("DELETE", "/admin/users/invites/"+second.Text("id"), chief, nil).OK().Body); got != "{}" {
		t.Errorf("answered %s", got)
	}
	accept(second.Text("invite_link")).RequireFault(404, "AB08", "token")
	h.Do("DELETE", "/admin/users/invites/"+second.Text("id"), chief, nil).RequireFault(409, "AB07", "id")
	third := post().OK()
	accept(third.Text("invite_link")).OK()
	h.Do("POST", "/invites", chief, `{"email":"fay@example.com","role":"admin"}`).OK()
	for status, want := range map[string]string{"": "4", "pending": "1", "expired": "1", "cancelled": "1", "accepted": "1"} {
		query := "?pageSize=10"
		if status != "" {
			query += "&status=" + status
		}
		if got := fmt.Sprint(h.Do("GET", "/invites"+query, chief, nil).OK().At("total")); got != want {
			t.Errorf("%s: %s, want %s", status, got, want)
		}
	}
}

func newInstallationAt(t testing.TB, now func() time.Time) *admintest.Installation {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	r := resource.New(s, resource.Embedded(), resource.Clock(now))
	return admintest.NewWithStore(t, s, r, New(Deps{PublicURL: "https://gateway.example.com/v1"}))
}

func TestBadInvitationsAreRefusedWithTheirFields(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	for body, field := range map[string]string{
		`{}`: "email", `{"email":"ann@example.com"}`: "role", `{"email":"ann","role":"admin"}`: "email", `{"email":"Ann <ann@example.com>","role":"admin"}`: "email",
		`{"email":"ann@example.com\r\nBcc: x@y.com","role":"admin"}`:                                                                                         "email",
		`{"email":7,"role":"admin"}`:                                                                                                                         "email",
		`{"email":"ann@example.com","role":"owner"}`:                                                                                                         "role",
		`{"email":"ann@example.com","role":"admin","workspaces":[{"id":"nowhere","role":"member"}]}`:                                                         "workspaces[0].id",
		`{"email":"ann@example.com","role":"admin","workspaces":[{"id":"` + h.Three + `","role":"member"}]}`:                                                 "workspaces[0].id",
		`{"email":"ann@example.com","role":"admin","workspaces":[{"id":"` + h.One + `","role":"owner"}]}`:                                                    "workspaces[0].role",
		`{"email":"ann@example.com","role":"admin","workspaces":[{"id":"` + h.One + `"}]}`:                                                                   "workspaces[0].role",
		`{"email":"ann@example.com","role":"admin","workspaces":[{"id":"` + h.One + `","role":"member"},{"id":"` + admintest.OneSlug + `","role":"admin"}]}`: "workspaces[1].id",
		`{"email":"ann@example.com","role":"admin","workspace_api_key_details":{"scopes":["audit_logs.list"]}}`:                                              "workspace_api_key_details.scopes[0]",
		`{"email":"ann@example.com","role":"admin","workspace_api_key_details":{"scopes":[]}}`:                                                               "workspace_api_key_details.scopes",
	} {
		if a := h.Do("POST", "/users/invites", chief, body); a.Status == 200 {
			t.Errorf("accepted: %s", body)
		} else {
			a.RequireFault(400, "AB01", field)
		}
	}
	if got := h.Do("GET", "/users/invites", chief, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("a refused invitation was kept: %s", got.Body)
	}
}

// An invitation for more workspaces than one change can hold is accepted entirely, and by one
// of several calls.
func TestALargeInvitationIsAcceptedByOneCall(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	var entries []string
	for i := range 30 {
		rec := resource.Record{Scope: org, Kind: tenant.KindWorkspace, Slug: fmt.Sprintf("ws-more-%06d", i), Name: "More", Status: "active", Body: []byte("{}")}
		if err := h.Resources.Change(t.Context(), org, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, `{"id":"`+rec.ID+`","role":"member"}`)
	}
	link := h.Do("POST", "/invites", chief, `{"email":"ann@example.com","role":"member","workspace_api_key_details":{"scopes":["completions.write"]},"workspaces":[`+strings.Join(entries, ",")+`]}`).OK().Text("invite_link")
	var wg sync.WaitGroup
	answers := make([]admintest.Response, 4)
	for i := range answers {
		wg.Go(func() { answers[i] = h.Do("POST", "/invites/accept", "", `{"token":"`+tokenOf(t, link)+`"}`) })
	}
	wg.Wait()
	done := 0
	for _, a := range answers {
		switch a.Status {
		case 200:
			if done++; len(a.At("api_keys").([]any)) != 30 {
				t.Errorf("%s", a.Body)
			}
		case 404, 409:
		default:
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if users := h.Do("GET", "/users", chief, nil).OK(); done != 1 || users.At("total") != 1.0 || len(users.At("data", "0", "workspace_ids").([]any)) != 30 {
		t.Errorf("%d accepted: %s", done, users.Body)
	}
}

func TestInvitationIsValidWithoutItsMail(t *testing.T) {
	t.Parallel()
	h, mails := newInstallation(t)
	mails.fail = errors.New("no")
	link := h.Do("POST", "/invites", chief, invitation1(h, "")).OK().Text("invite_link")
	if a := h.Do("POST", "/invites/accept", "", `{"token":"`+tokenOf(t, link)+`"}`).OK(); len(a.At("api_keys").([]any)) != 0 {
		t.Errorf("keys that nobody asked for: %s", a.Body)
	}
}

// If only the identity provider manages users, no other caller invites, promotes or removes
// them.
func TestUsersByTheIdentityProviderAlone(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	id := addUser(t, h, "ann@example.com", membership.Member)
	h.SetSettings(tenant.Settings{Scim: tenant.Scim{ScimOnly: true}})
	h.Do("POST", "/admin/users/invites", admintest.AdminKey, `{"email":"new@example.com","role":"admin"}`).RequireFault(409, "AB07", "")
	h.Do("PUT", "/admin/users/"+id, admintest.AdminKey, `{"role":"admin"}`).RequireFault(409, "AB07", "")
	h.Do("PUT", "/admin/users/"+id+"/ownership", admintest.AdminKey, `{"owner":true}`).RequireFault(409, "AB07", "")
	h.Do("DELETE", "/admin/users/"+id, admintest.AdminKey, nil).RequireFault(409, "AB07", "")
	if got := h.Do("GET", "/admin/users/"+id, admintest.AdminKey, nil).OK().Text("role"); got != membership.Member {
		t.Errorf("role %s", got)
	}
	if got := h.Do("GET", "/admin/users/invites", admintest.AdminKey, nil).OK().At("total"); got != 0.0 {
		t.Errorf("%v invitations", got)
	}
}
