package scim

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// together makes calls at the same time, and gives their responses in order.
func together(n int, call func(i int) admintest.Response) []admintest.Response {
	out := make([]admintest.Response, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i] = call(i) })
	}
	wg.Wait()
	return out
}

func (p idp) members(group string) (out []string) {
	p.t.Helper()
	list, _ := p.call(200, "GET", "/Groups/"+group, "").At("members").([]any)
	for _, m := range list {
		out = append(out, m.(map[string]any)["value"].(string))
	}
	return out
}

// Providers send a change of a group for each user, several at once: none undoes another.
func TestConcurrentGroupChangesAllApply(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	const n = 10
	var stay, joining, gone []string
	for i := range n {
		stay = append(stay, p.user(fmt.Sprintf("stay%d@example.com", i)))
		joining = append(joining, p.user(fmt.Sprintf("come%d@example.com", i)))
		gone = append(gone, p.user(fmt.Sprintf("go%d@example.com", i)))
	}
	group := p.group("ws-One-role-manager", append(stay, gone...)...)
	path, ops := "/scim/Groups/"+group, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[%s]}`
	for i, got := range together(2*n, func(i int) admintest.Response {
		op := fmt.Sprintf(`{"op":"Add","path":"members","value":[{"value":%q}]}`, joining[i/2])
		if i%2 == 1 {
			op = fmt.Sprintf(`{"op":"Remove","path":"members[value eq \"%s\"]"}`, gone[i/2])
		}
		return send(h, "PATCH", path, p.token, fmt.Sprintf(ops, op), nil)
	}) {
		if got.Status != 200 {
			t.Errorf("%d: %d %s", i, got.Status, got.Body)
		}
	}
	in := strings.Join(p.members(group), " ")
	for i := range n {
		if !strings.Contains(in, stay[i]) || !strings.Contains(in, joining[i]) || strings.Contains(in, gone[i]) {
			t.Errorf("%d: one who stays is in it: %v, one who came: %v, one who left: %v", i, strings.Contains(in, stay[i]), strings.Contains(in, joining[i]), strings.Contains(in, gone[i]))
		}
		p.wantRole("who came", h.One, joining[i], "manager")
		p.wantRole("who left", h.One, gone[i], "")
	}
}

// The entity tag of a group changes with everything in its resource.
func TestTheTagOfAGroupMovesOnWithItsMembers(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	ann, bob := p.user("ann@example.com"), p.user("bob@example.com")
	group := p.group("Devs")
	path := "/scim/Groups/" + group
	add := func(id string) string {
		return fmt.Sprintf(`{"Operations":[{"op":"add","path":"members","value":[{"value":%q}]}]}`, id)
	}
	seen, when := p.call(200, "GET", "/Groups/"+group, "").Text("meta", "version"), ""
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"one enters", func() { p.add(group, ann) }},
		{"another enters", func() { p.add(group, bob) }},
		{"one leaves", func() { p.remove(group, ann) }},
		{"one is removed", func() { p.call(204, "DELETE", "/Users/"+bob, "") }},
		{"two enter in one call", func() { bob = p.user("bob@example.com"); p.add(group, ann, bob) }},
		{"it gets another name", func() { p.patch("/Groups/"+group, `{"op":"replace","path":"displayName","value":"Others"}`) }},
		{"all leave at once", func() { p.call(200, "PUT", "/Groups/"+group, `{"displayName":"Others"}`) }},
	} {
		what := c.what
		c.change()
		got := send(h, "GET", path, p.token, "", map[string]string{"If-None-Match": seen})
		if got.Status != 200 || got.Text("meta", "version") == seen {
			t.Errorf("%s: %d, the tag is %s still", what, got.Status, seen)
			continue
		}
		if late := send(h, "PATCH", path, p.token, add(ann), map[string]string{"If-Match": seen}); late.Status != 412 {
			t.Errorf("%s: a change of what was seen before: %d %s", what, late.Status, late.Body)
		}
		if now := got.Text("meta", "lastModified"); now < when {
			t.Errorf("%s: lastModified went back from %s to %s", what, when, now)
		} else {
			when = now
		}
		seen = got.Text("meta", "version")
	}
	if got := send(h, "GET", path, p.token, "", map[string]string{"If-None-Match": seen}); got.Status != 304 {
		t.Errorf("nothing has changed: %d", got.Status)
	}
	// Of calls that have seen the same group one is taken.
	done := map[int]int{}
	for _, got := range together(6, func(i int) admintest.Response {
		return send(h, "PATCH", path, p.token, add([]string{ann, bob}[i%2]), map[string]string{"If-Match": seen})
	}) {
		done[got.Status]++
	}
	if done[200] != 1 || done[412] != 5 {
		t.Errorf("of six calls at once: %v", done)
	}
}

// Groups with names of one workspace create it once, also concurrently.
func TestGroupsOfOneWorkspaceMakeOne(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	for round := range 5 {
		name := fmt.Sprintf("Team %d", round)
		for i, got := range together(4, func(i int) admintest.Response {
			spelled := []string{name, strings.ToUpper(name)}[i%2]
			return send(h, "POST", "/scim/Groups", p.token, fmt.Sprintf(`{"displayName":"ws-%s-role-%s"}`, spelled, []string{"member", "admin"}[i/2]), nil)
		}) {
			if got.Status != 201 {
				t.Errorf("%d: %d %s", i, got.Status, got.Body)
			}
		}
		rows, err := h.Resources.List(context.Background(), org, tenant.KindWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range rows {
			if strings.EqualFold(rows[i].Name, name) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d workspaces are called %s", n, name)
		}
		// One that was archived may be made again.
		for _, g := range p.named(name) {
			p.call(204, "DELETE", "/Groups/"+g, "")
		}
		p.group("ws-" + name + "-role-manager")
		if ws, ok := p.workspace(name); !ok || ws.Archived() {
			t.Errorf("the workspace %s is not made again", name)
		}
	}
}

// named returns the groups with a part in their names.
func (p idp) named(part string) (out []string) {
	p.t.Helper()
	list, _ := p.call(200, "GET", "/Groups?filter="+url.QueryEscape(fmt.Sprintf("displayName co %q", part)), "").At("Resources").([]any)
	for _, g := range list {
		out = append(out, g.(map[string]any)["id"].(string))
	}
	return out
}

// Concurrent calls that create the same resource create it once, and the others get an error of
// the protocol.
func TestTheSameIsMadeOnce(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	for round := range 8 {
		for path, body := range map[string]func(i int) string{
			"/Users": func(int) string { return fmt.Sprintf(`{"userName":"same%d@example.com"}`, round) },
			"/users of one name": func(i int) string {
				return fmt.Sprintf(`{"userName":"name%d","emails":[{"value":"mail%d-%d@example.com"}]}`, round, round, i)
			},
			"/users of one address": func(i int) string {
				return fmt.Sprintf(`{"userName":"login%d-%d","emails":[{"value":"one%d@example.com"}]}`, round, i, round)
			},
			"/Groups": func(int) string { return fmt.Sprintf(`{"displayName":"Group %d"}`, round) },
		} {
			at := "/scim/Users"
			if path == "/Groups" {
				at = "/scim/Groups"
			}
			done := map[int]int{}
			for _, got := range together(4, func(i int) admintest.Response { return send(h, "POST", at, p.token, body(i), nil) }) {
				if done[got.Status]++; got.Status == 409 && (got.Text("scimType") != "uniqueness" || strings.Contains(string(got.Body), "slug")) {
					t.Errorf("%s: %s", path, got.Body)
				}
			}
			if done[201] != 1 || done[409] != 3 {
				t.Errorf("%s: %v", path, done)
			}
		}
	}
}
