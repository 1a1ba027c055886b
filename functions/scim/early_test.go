package scim

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/identity/membership"
	"gateway/shared/resource"
)

// A call about a large group may end early: the list of the group then has people who
// entered or left and were not handled yet. The same call again, or the next one about the
// group, does the rest.
func TestACallThatEndedEarlyIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	type cut struct {
		left   bool // or entered
		repeat func(p idp, group, user string)
	}
	remove := func(p idp, group, user string) { p.remove(group, user) }
	for name, c := range map[string]cut{
		"the same removal again": {true, remove},
		"another user is added":  {true, func(p idp, group, _ string) { p.add(group, p.user("bob@example.com")) }},
		"the whole group again": {true, func(p idp, group, _ string) {
			p.call(200, "PUT", "/Groups/"+group, `{"displayName":"ws-One-role-manager","members":[]}`)
		}},
		"the group is deleted": {true, func(p idp, group, _ string) { p.call(204, "DELETE", "/Groups/"+group, "") }},
		"the user is written": {true, func(p idp, _, user string) {
			p.patch("/Users/"+user, `{"op":"replace","path":"name.givenName","value":"A"}`)
		}},
		"the same addition again": {false, func(p idp, group, user string) { p.add(group, user) }},
		"somebody else leaves it": {false, func(p idp, group, _ string) {
			bob := p.user("bob@example.com")
			p.add(group, bob)
			p.remove(group, bob)
		}},
		"it is taken out after all":   {false, remove},
		"it is stopped and then back": {false, func(p idp, _, user string) { p.active(user, false); p.active(user, true) }},
	} {
		h := newInstallation(t)
		p := newProvider(t, h, chief)
		ann := p.user("ann@example.com")
		var group string
		move := func(do func(*resource.Tx, *resource.Record, *membership.User, string) error) {
			p.change(func(tx *resource.Tx) error {
				rec, u, _, err := membership.ByID(tx, org, ann)
				if err == nil {
					err = do(tx, &rec, u, group)
				}
				if err != nil {
					return err
				}
				return membership.Save(tx, &rec, u, "test")
			})
		}
		if c.left {
			group = p.group("ws-One-role-manager", ann)
			p.wantRole(name+": before", h.One, ann, "manager")
			move(membership.ExitOpen)
			if in, err := membership.InGroup(context.Background(), h.Resources, org, group); err != nil || len(in) != 0 {
				t.Errorf("%s: %v is in the group, %v", name, in, err)
			}
			p.wantRole(name+": early", h.One, ann, "manager")
		} else {
			group = p.group("ws-One-role-manager")
			move(membership.EnterOpen)
			p.wantRole(name+": early", h.One, ann, "")
		}
		c.repeat(p, group, ann)
		want := "manager"
		if c.left || strings.HasPrefix(name, "it is taken") {
			want = ""
		}
		p.wantRole(name, h.One, ann, want)
		if open, err := membership.OpenIn(context.Background(), h.Resources, org, group); err != nil || len(open) != 0 && name != "the user is written" && !strings.HasPrefix(name, "it is stopped") {
			t.Errorf("%s: %v is left, %v", name, open, err)
		}
	}
}

// The same of mappings that have changed: by another name of the group, or by hand.
func TestMappingsThatChangedAreSettledByTheNextCall(t *testing.T) {
	t.Parallel()
	for name, repeat := range map[string]func(p idp, group string){
		"the same name again": func(p idp, group string) {
			p.patch("/Groups/"+group, `{"op":"replace","path":"displayName","value":"ws-Two-role-member"}`)
		},
		"another user is added": func(p idp, group string) { p.add(group, p.user("bob@example.com")) },
		"yet another name": func(p idp, group string) {
			p.patch("/Groups/"+group, `{"op":"replace","path":"displayName","value":"nothing"}`)
		},
		"the group is deleted": func(p idp, group string) { p.call(204, "DELETE", "/Groups/"+group, "") },
		"the whole group is sent": func(p idp, group string) {
			p.call(200, "PUT", "/Groups/"+group, `{"displayName":"ws-Two-role-member","members":[]}`)
		},
	} {
		h := newInstallation(t)
		p := newProvider(t, h, chief)
		ann := p.user("ann@example.com")
		group := p.group("ws-One-role-manager", ann)
		p.change(func(tx *resource.Tx) error { // the name and its mapping, and no more
			rec, g, _, err := membership.AnyGroup(tx, org, group)
			if err != nil {
				return err
			}
			if err := membership.ChangeGroup(tx, &rec, g, "ws-Two-role-member", "", "test"); err != nil {
				return err
			}
			recs, forms, err := membership.MappingsOf(tx, org, group)
			if err != nil {
				return err
			}
			if err := membership.Unmap(tx, &recs[0], forms[0], "test"); err != nil {
				return err
			}
			now, g, _, err := membership.AnyGroup(tx, org, group)
			if err != nil {
				return err
			}
			g.Remap(h.One)
			return membership.MapByName(tx, now, g, h.Two, "member", false, "test")
		})
		p.wantRole(name+": early", h.One, ann, "manager")
		p.wantRole(name+": early", h.Two, ann, "")
		repeat(p, group)
		two := "member"
		if strings.HasPrefix(name, "the group") || strings.HasPrefix(name, "the whole") || strings.HasPrefix(name, "yet") {
			two = ""
		}
		p.wantRole(name+": what ended", h.One, ann, "")
		p.wantRole(name+": what began", h.Two, ann, two)
	}

	// By hand: the mapping exists, and no user has joined.
	h := newInstallation(t)
	p := newProvider(t, h, chief)
	ann := p.user("ann@example.com")
	group := p.group("Engineering", ann)
	p.change(func(tx *resource.Tx) error {
		rec, g, _, err := membership.AnyGroup(tx, org, group)
		if err != nil {
			return err
		}
		g.Remap()
		return membership.MapByName(tx, rec, g, h.One, "member", false, "test")
	})
	p.wantRole("early", h.One, ann, "")
	body := fmt.Sprintf(`{"workspace_id":%q,"role":"member","scim_group_id":%q}`, h.One, group)
	if got := send(h.For(t), "POST", "/scim/workspaces", chief, body, nil); got.Status != 409 {
		t.Errorf("the mapping again: %d %s", got.Status, got.Body)
	}
	p.wantRole("the mapping again", h.One, ann, "member")
}
