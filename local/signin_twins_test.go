package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"gateway/shared/signin/browser"
	"gateway/shared/testkit/awstest"
)

// twins are two processes' worth of one installation: each has its own stores' handles and
// caches, and they share a DynamoDB endpoint and nothing else.
type twins struct {
	t         *testing.T
	processes []*lobby
	scim      string
}

const publicURL = "http://gateway.example.com/v1"

func newTwins(t *testing.T) *twins {
	t.Helper()
	awstest.Start(t)
	t.Setenv("GATEWAY_PUBLIC_URL", publicURL)
	idp, txt := newIssuer(t), &sync.Map{}
	idp.redirect = publicURL + "/auth/callback/default"
	w := &twins{t: t}
	for range 2 {
		o, err := parse([]string{"-addr", "127.0.0.1:0", "-data", t.TempDir(), "-store", "aws"})
		if err != nil {
			t.Fatal(err)
		}
		r := startWith(t, o, func(g *gateway) {
			g.core.LookUpTXT = func(_ context.Context, name string) ([]string, error) {
				if v, ok := txt.Load(name); ok {
					return []string{v.(string)}, nil
				}
				return nil, errors.New("no such host")
			}
		})
		w.processes = append(w.processes, &lobby{entrance: &entrance{running: r, idp: idp}})
	}
	first := w.processes[0]
	first.configured = first.admin("POST", "/auth/sso-configurations", fmt.Sprintf(`{"name":"corp","issuer":%q,"client_id":"the-client","client_secret":"a:secret&"}`, idp.URL))["id"].(string)
	made := first.admin("POST", "/auth/domains", `{"domain":"example.com"}`)
	txt.Store(made["txt_name"], made["txt_value"])
	first.admin("POST", "/auth/domains/"+made["id"].(string)+"/verify", "")
	w.scim = first.admin("POST", "/scim/tokens", `{"name":"idp"}`)["token"].(string)
	return w
}

// arrival is a browser that an identity provider has sent back.
type arrival struct {
	callback string
	jar      map[string]string
}

// arrive lets somebody show who it is at the provider, and stops before the callback.
func (w *twins) arrive(name, query string) arrival {
	w.t.Helper()
	e := w.processes[0]
	e.idp.set(func() { e.idp.claims = map[string]any{"email": name + "@example.com", "sub": name} })
	a := arrival{jar: map[string]string{}}
	a.callback = strings.TrimPrefix(e.begin("email=ann@example.com"+query, a.jar), publicURL)
	return a
}

// finish ends a sign-in at one of the processes.
func (w *twins) finish(a arrival, at int) (got reply, session string) {
	w.t.Helper()
	jar := maps.Clone(a.jar)
	got = w.processes[at%2].hop(w.processes[at%2].base+a.callback, jar)
	return got, jar[browser.Cookie]
}

// together makes calls at the same time, by turns at both processes.
func (w *twins) together(n int, call func(i int, at *lobby) reply) (statuses []int, all []reply) {
	w.t.Helper()
	all = make([]reply, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { all[i] = call(i, w.processes[i%2]) })
	}
	wg.Wait()
	for _, got := range all {
		statuses = append(statuses, got.status)
	}
	slices.Sort(statuses)
	return statuses, all
}

func (w *twins) want(what string, got []int, want ...int) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (w *twins) provision(at *lobby, method, path, body string) reply {
	return at.without(method, "/scim"+path, body, "Authorization", "Bearer "+w.scim, "Content-Type", "application/scim+json")
}

// users is how many users have an address.
func (w *twins) users(email string) float64 {
	w.t.Helper()
	got := w.provision(w.processes[1], "GET", "/Users?filter="+url.QueryEscape(fmt.Sprintf("emails.value eq %q", email)), "")
	n, _ := got.json(w.t)["totalResults"].(float64)
	return n
}

// TestWhatHappensOnceHappensOnceInTwoProcesses does at both, at the same time, what may be
// done once. In a row: it sets the environment. All of it takes fewer pages of sign-in than
// an address has in a minute.
func TestWhatHappensOnceHappensOnceInTwoProcesses(t *testing.T) {
	w := newTwins(t)
	t.Run("an answer of a provider", w.onceAnAnswer)
	t.Run("the first sign-in of a person", w.onceAPerson)
	t.Run("an invitation", w.onceAnInvitation)
	t.Run("a device", w.onceADevice)
	t.Run("the end of a session", w.onceAnEnd)
	t.Run("users and groups of a provider", w.onceAProvision)
	t.Run("the end of a user, and a sign-in", w.stoppedMeanwhile)
}

func (w *twins) of(t *testing.T) *twins {
	lobbies := make([]*lobby, len(w.processes))
	for i, d := range w.processes {
		r := *d.running
		r.t = t
		lobbies[i] = &lobby{entrance: &entrance{running: &r, idp: d.idp, configured: d.configured}}
	}
	return &twins{t, lobbies, w.scim}
}

func (w *twins) onceAnAnswer(t *testing.T) {
	w = w.of(t)
	for _, query := range []string{"", "&fresh=true"} {
		for range 2 {
			a := w.arrive("ann", query)
			got, _ := w.together(4, func(i int, _ *lobby) reply { r, _ := w.finish(a, i); return r })
			w.want("one answer four times"+query, got, 302, 401, 401, 401)
		}
	}
}

func (w *twins) onceAPerson(t *testing.T) {
	w = w.of(t)
	for n := range 2 {
		name := fmt.Sprintf("new%d", n)
		var as []arrival
		for range 4 {
			as = append(as, w.arrive(name, ""))
		}
		got, all := w.together(len(as), func(i int, _ *lobby) reply { r, _ := w.finish(as[i], i); return r })
		w.want("the first sign-ins of a person", got, 302, 302, 302, 302)
		if w.users(name+"@example.com") != 1 {
			t.Errorf("%s is not one user: %v", name, all)
		}
	}
}

func (w *twins) onceAnInvitation(t *testing.T) {
	w = w.of(t)
	first := w.processes[0]
	first.admin("PUT", "/admin/organisation/settings", `{"user_api_key_settings":{"default_workspace_user_api_key_auto_create":true}}`)
	defer first.admin("PUT", "/admin/organisation/settings", `{"user_api_key_settings":{"default_workspace_user_api_key_auto_create":null}}`)
	for n := range 2 {
		email := fmt.Sprintf("inv%d@example.com", n)
		body := fmt.Sprintf(`{"email":%q,"role":"member","workspaces":[{"id":"default","role":"manager"}]}`, email)
		replies, _ := w.together(4, func(_ int, at *lobby) reply {
			return at.call("POST", "/admin/users/invites", body, "X-Gateway-Api-Key", adminKey)
		})
		w.want("one invitation four times", replies, 200, 409, 409, 409)
		var as []arrival
		for range 4 {
			as = append(as, w.arrive(fmt.Sprintf("inv%d", n), ""))
		}
		sessions := make([]string, len(as))
		got, _ := w.together(len(as), func(i int, _ *lobby) (r reply) { r, sessions[i] = w.finish(as[i], i); return r })
		w.want("sign-ins of who is invited", got, 302, 302, 302, 302)
		self := w.processes[1].as(sessions[0], "GET", "/auth/self", "")
		w.processes[1].wantStatus("its role", self, 200, `"role":"manager"`)
		if self.status != 200 {
			continue
		}
		user := self.json(t)["user"].(map[string]any)["id"].(string)
		keys := w.processes[1].call("GET", "/api-keys?workspace_id=default&page_size=100", "", "X-Gateway-Api-Key", adminKey)
		if strings.Count(keys.body, fmt.Sprintf(`"user_id":%q`, user)) != 1 {
			t.Errorf("one key of %s: %s", user, keys.body)
		}
	}
}

func (w *twins) onceADevice(t *testing.T) {
	w = w.of(t)
	_, session := w.finish(w.arrive("dora", ""), 0)
	let := func() (deviceCodes, reply) {
		s := w.processes[0].device()
		s.complete = strings.Replace(s.complete, publicURL, w.processes[0].base, 1)
		page := w.processes[0].hop(s.complete+"&here=true", map[string]string{browser.Cookie: session})
		w.processes[0].wantStatus("the page", page, 200, s.user)
		return s, page
	}
	for range 2 {
		s, page := let()
		replies, _ := w.together(4, func(i int, at *lobby) reply {
			return at.sendForm(page, session, []string{"allow", "allow", "deny", "deny"}[i])
		})
		if replies[0] != 200 || slices.Contains(replies[1:], 200) {
			t.Errorf("one code decided four times: %v", replies)
		}
		s, page = let()
		w.processes[0].wantStatus("allowed", w.processes[0].sendForm(page, session, "allow"), 200, "It is in")
		got, all := w.together(4, func(_ int, at *lobby) reply { return at.poll(s) })
		w.want("one code asked with four times", got, 200, 400, 400, 400)
		for _, r := range all {
			if r.status != 200 && !strings.Contains(r.body, "invalid_grant") {
				t.Errorf("%s", r.body)
			}
		}
	}
}

func (w *twins) onceAnEnd(t *testing.T) {
	w = w.of(t)
	_, session := w.finish(w.arrive("eve", ""), 0)
	for range 3 {
		_, ends := w.finish(w.arrive("eve", ""), 1)
		id := w.processes[0].as(ends, "GET", "/auth/self", "").json(t)["session"].(map[string]any)["id"].(string)
		w.processes[1].wantStatus("known to both", w.processes[1].as(ends, "GET", "/auth/self", ""), 200, id)
		got, _ := w.together(4, func(i int, at *lobby) reply {
			if i > 1 {
				return at.as(ends, "POST", "/auth/logout", "")
			}
			return at.as(session, "DELETE", "/auth/sessions/"+id, "")
		})
		if got[0] != 200 || got[3] >= 500 {
			t.Errorf("one session ended four times: %v", got)
		}
		for _, at := range w.processes {
			at.until("the session", 401, func() reply { return at.as(ends, "GET", "/auth/self", "") })
			at.wantStatus("the other", at.as(session, "GET", "/auth/self", ""), 200, "eve@")
		}
	}
}

func (w *twins) onceAProvision(t *testing.T) {
	w = w.of(t)
	var ids []string
	for n := range 6 {
		email := fmt.Sprintf("scim%d@example.com", n)
		got, all := w.together(4, func(_ int, at *lobby) reply {
			return w.provision(at, "POST", "/Users", fmt.Sprintf(`{"userName":%q}`, email))
		})
		w.want("one user four times", got, 201, 409, 409, 409)
		for _, r := range all {
			if r.status == 201 {
				ids = append(ids, r.json(t)["id"].(string))
			}
		}
	}
	got, all := w.together(4, func(_ int, at *lobby) reply {
		return w.provision(at, "POST", "/Groups", `{"displayName":"ws-Twins-role-manager"}`)
	})
	w.want("one group four times", got, 201, 409, 409, 409)
	at := slices.IndexFunc(all, func(r reply) bool { return r.status == 201 })
	if at < 0 {
		return
	}
	group := all[at].json(t)["id"].(string)
	patch := func(at *lobby, op string) reply {
		return w.provision(at, "PATCH", "/Groups/"+group, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`+op+`]}`)
	}
	got, _ = w.together(len(ids), func(i int, at *lobby) reply {
		return patch(at, fmt.Sprintf(`{"op":"add","path":"members","value":[{"value":%q}]}`, ids[i]))
	})
	w.want("members who enter together", got, 200, 200, 200, 200, 200, 200)
	in := w.provision(w.processes[0], "GET", "/Groups/"+group, "")
	for _, id := range ids {
		if !strings.Contains(in.body, id) {
			t.Errorf("%s is lost: %s", id, in.body)
		}
	}
}

// A sign-in that comes while its user is stopped leaves no session that is there when the
// user is back.
func (w *twins) stoppedMeanwhile(t *testing.T) {
	w = w.of(t)
	made := w.provision(w.processes[0], "POST", "/Users", `{"userName":"gone@example.com"}`)
	id := made.json(t)["id"].(string)
	active := func(at *lobby, is bool) reply {
		return w.provision(at, "PATCH", "/Users/"+id, fmt.Sprintf(`{"Operations":[{"op":"replace","path":"active","value":%v}]}`, is))
	}
	w.processes[0].wantStatus("stopped", active(w.processes[0], false), 200, `"active":false`)
	got, _ := w.finish(w.arrive("gone", ""), 1)
	w.processes[1].wantStatus("a sign-in of who is stopped", got, 403, "This user is deactivated")
	w.processes[1].wantStatus("an invitation", w.processes[1].call("POST", "/admin/users/invites", `{"email":"gone@example.com","role":"admin"}`, "X-Gateway-Api-Key", adminKey), 409, "deactivated by")
	w.processes[0].wantStatus("back", active(w.processes[0], true), 200, `"active":true`)
	for range 3 {
		as := []arrival{w.arrive("gone", ""), w.arrive("gone", ""), w.arrive("gone", "")}
		sessions := make([]string, 4)
		_, all := w.together(4, func(i int, at *lobby) (r reply) {
			if i == 3 {
				return active(at, false)
			}
			r, sessions[i] = w.finish(as[i], i)
			return r
		})
		for i, r := range all {
			if i == 3 && r.status != 200 || i < 3 && r.status != 302 && r.status != 403 {
				t.Errorf("%d: %d %s", i, r.status, r.body)
			}
		}
		w.processes[0].wantStatus("back", active(w.processes[0], true), 200, `"active":true`)
		for _, s := range sessions {
			if s != "" {
				w.processes[0].until("a session of before", 401, func() reply { return w.processes[0].as(s, "GET", "/auth/self", "") })
			}
		}
	}
}
