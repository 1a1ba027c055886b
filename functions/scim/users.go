package scim

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/people"
	"gateway/shared/resource"
	"gateway/shared/signin/scim"
	"gateway/shared/store"
)

// readAtOnce is how many records are read together.
const readAtOnce = 100

func (f *family) getUser(c *admin.Call) (any, error) {
	rec, u, err := f.user(c, c.Param("scimId"))
	if err != nil {
		return nil, err
	}
	return f.shownUser(c, rec, u)
}

// user reads a user, also one who is stopped.
func (f *family) user(c *admin.Call, id string) (*resource.Record, *people.User, error) {
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), people.KindUser, id)
	if err != nil {
		return nil, nil, err
	}
	if !ok || rec.ID != id {
		return nil, nil, missing(c)
	}
	u, err := people.DecodeUser(rec)
	if err == nil && u.Leaving && !u.Stopped {
		err = missing(c)
	}
	return &rec, u, err
}

func (f *family) shownUser(c *admin.Call, rec *resource.Record, u *people.User) (any, error) {
	groups, err := f.groupNames(c, u.Groups)
	if err != nil {
		return nil, err
	}
	doc, err := userDoc(f.base(c), rec, u, groups)
	if err != nil {
		return nil, err
	}
	return answer(c, rec, doc), nil
}

// groupNames are the names of groups by their ids.
func (f *family) groupNames(c *admin.Call, ids []string) (map[string]string, error) {
	out := map[string]string{}
	if len(ids) == 0 {
		return out, nil
	}
	rows, err := c.Resources.List(c.Context, c.Organisation(), people.KindGroup)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		out[rows[i].ID] = rows[i].Name
	}
	return out, nil
}

func (f *family) listUsers(c *admin.Call) (any, error) {
	filter, err := filterOf(c)
	if err != nil {
		return nil, err
	}
	rows, err := f.userRows(c, filter)
	if err != nil {
		return nil, err
	}
	if filter == nil {
		from, until, start := page(c, len(rows))
		docs, err := f.userDocs(c, rows[from:until], nil)
		if err != nil {
			return nil, err
		}
		chosen(c, docs...)
		return listed(len(rows), start, docs), nil
	}
	docs, err := f.userDocs(c, rows, filter)
	if err != nil {
		return nil, err
	}
	from, until, start := page(c, len(docs))
	chosen(c, docs[from:until]...)
	return listed(len(docs), start, docs[from:until]), nil
}

func filterOf(c *admin.Call) (*scim.Filter, error) {
	if text := strings.TrimSpace(c.Query.Text("filter")); text != "" {
		return scim.ParseFilter(text)
	}
	return nil, nil
}

// userRows are the users that a filter may be met by, oldest first.
func (f *family) userRows(c *admin.Call, filter *scim.Filter) ([]resource.Row, error) {
	if filter != nil {
		if name, ok := filter.Equals("userName"); ok {
			id, ok, err := people.ByLogin(c.Context, c.Resources, c.Organisation(), name)
			if err != nil || !ok {
				return nil, err
			}
			return []resource.Row{{ID: id}}, nil
		}
		if id, ok := filter.Equals("id"); ok {
			return []resource.Row{{ID: id}}, nil
		}
	}
	live, err := c.Resources.List(c.Context, c.Organisation(), people.KindUser)
	if err != nil {
		return nil, err
	}
	stopped, err := c.Resources.ListArchived(c.Context, c.Organisation(), people.KindUser)
	if err != nil {
		return nil, err
	}
	return ordered(filter, live, stopped), nil
}

// ordered puts lists together, oldest first, without what a filter by the provider's id
// leaves out.
func ordered(filter *scim.Filter, lists ...[]resource.Row) []resource.Row {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b resource.Row) int { return strings.Compare(a.Order, b.Order) })
	if filter != nil {
		if id, ok := filter.Equals("externalId"); ok {
			return slices.DeleteFunc(all, func(r resource.Row) bool { return r.Fields[people.FieldExternal] != id })
		}
	}
	return all
}

// userDocs reads users, of whom a filter may leave some out.
func (f *family) userDocs(c *admin.Call, rows []resource.Row, filter *scim.Filter) (out []map[string]any, err error) {
	base := f.base(c)
	var groups map[string]string
	for part := range slices.Chunk(rows, readAtOnce) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		recs, err := c.Resources.GetMany(c.Context, c.Organisation(), people.KindUser, ids)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			u, err := people.DecodeUser(recs[i])
			if err != nil {
				return nil, err
			}
			if u.Leaving && !u.Stopped {
				continue
			}
			if groups == nil && len(u.Groups) > 0 {
				if groups, err = f.groupNames(c, u.Groups); err != nil {
					return nil, err
				}
			}
			doc, err := userDoc(base, &recs[i], u, groups)
			if err != nil {
				return nil, err
			}
			if filter == nil || filter.Matches(doc) {
				out = append(out, doc)
			}
		}
	}
	return out, nil
}

// body reads what a client sends.
func body(c *admin.Call) (map[string]any, error) { return scim.Parse(c.Raw()) }

func (f *family) createUser(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	schema, err := f.schema(c)
	if err != nil {
		return nil, err
	}
	doc, err := schema.Read(sent)
	if err != nil {
		return nil, err
	}
	w, err := f.wanted(c, doc, &people.User{})
	if err != nil {
		return nil, err
	}
	id, err := f.make(c, w)
	if err != nil {
		return nil, err
	}
	c.About(id)
	return f.finish(c, id, w)
}

// make makes a user, or accepts the invitation that there is for it.
func (f *family) make(c *admin.Call, w *wanted) (id string, err error) {
	taken := fault.New(fault.Conflict, "userName", "another user of the organisation has this name or address already")
	if _, there, err := people.ByLogin(c.Context, c.Resources, c.Organisation(), w.login.UserName); err != nil || there {
		if there {
			err = taken
		}
		return "", err
	}
	var invited *people.Acceptance
	err = f.rounds(c, func(tx *resource.Tx) (bool, error) {
		if invited == nil {
			invite, pending, err := people.PendingFor(tx, c.Organisation(), w.email)
			if err != nil {
				return false, err
			}
			if pending {
				invited = &people.Acceptance{Org: c.Organisation(), ID: invite, Shown: true, Claim: c.RequestID, Rows: 4 + identity.RowsOfKey, FirstName: w.first, LastName: w.last, Joined: f.handed(c)}
			}
		}
		if invited != nil {
			more, err := invited.Step(tx)
			if invited.User != nil {
				id = invited.User.ID
			}
			return more, err
		}
		rec, err := people.Create(tx, c.Organisation(), &people.User{Email: w.email, FirstName: w.first, LastName: w.last, Role: people.Member}, c.Actor())
		if err != nil {
			if fault.Is(err, fault.Conflict) {
				err = taken
			}
			return false, err
		}
		id = rec.ID
		u, err := people.DecodeUser(*rec)
		if err != nil {
			return false, err
		}
		return false, f.write(tx, c, rec, u, w)
	})
	if err != nil || invited == nil {
		return id, err
	}
	return id, f.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, u, ok, err := people.Known(tx, c.Organisation(), id)
		if err != nil || !ok {
			return false, err
		}
		return false, f.write(tx, c, &rec, u, w)
	})
}

// handed gives who joins a workspace by an invitation a key, where that was said. Its
// user collects it.
func (f *family) handed(c *admin.Call) func(tx *resource.Tx, user *resource.Record, workspace string, i *people.Invite) error {
	return func(tx *resource.Tx, user *resource.Record, workspace string, i *people.Invite) error {
		sc := store.Scope{Org: user.Scope.Org, Workspace: workspace}
		asked, err := people.Creates(tx, sc)
		if err != nil {
			return err
		}
		var scopes []string
		if i.Keys != nil {
			scopes = i.Keys.Scopes
		}
		if !asked && len(scopes) == 0 {
			return nil
		}
		_, _, err = people.Hand(tx, c.Resources, c.Sealer, sc, user, scopes, user.ID)
		return err
	}
}

func (f *family) putUser(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	schema, err := f.schema(c)
	if err != nil {
		return nil, err
	}
	doc, err := schema.Read(sent)
	if err != nil {
		return nil, err
	}
	return f.changeUser(c, func(map[string]any) (map[string]any, error) { return doc, nil })
}

func (f *family) patchUser(c *admin.Call) (any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	schema, err := f.schema(c)
	if err != nil {
		return nil, err
	}
	return f.changeUser(c, func(now map[string]any) (map[string]any, error) {
		return now, schema.Patch(now, sent)
	})
}

// changeUser writes what a user becomes, and what follows from it.
func (f *family) changeUser(c *admin.Call, become func(now map[string]any) (map[string]any, error)) (any, error) {
	id := c.Param("scimId")
	c.About(id)
	if _, _, err := f.user(c, id); err != nil {
		return nil, err
	}
	var w *wanted
	err := f.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, u, ok, err := people.Known(tx, c.Organisation(), id)
		if err != nil {
			return false, err
		}
		if !ok {
			return false, missing(c)
		}
		if err := unchanged(c, &rec); err != nil {
			return false, err
		}
		names, err := f.groupNames(c, u.Groups)
		if err != nil {
			return false, err
		}
		now, err := userDoc(f.base(c), &rec, u, names)
		if err != nil {
			return false, err
		}
		doc, err := become(now)
		if err != nil {
			return false, err
		}
		if w, err = f.wanted(c, doc, u); err != nil {
			return false, err
		}
		if other, there, err := people.ByLogin(c.Context, c.Resources, c.Organisation(), w.login.UserName); err != nil || there && other != id {
			if err == nil {
				err = fault.New(fault.Conflict, "userName", "another user of the organisation has this name or address already")
			}
			return false, err
		}
		return false, f.write(tx, c, &rec, u, w)
	})
	if err != nil {
		return nil, err
	}
	return f.finish(c, id, w)
}

// write puts what is wanted of a user into its record.
func (f *family) write(tx *resource.Tx, c *admin.Call, rec *resource.Record, u *people.User, w *wanted) error {
	if err := people.SetAddress(tx, rec, u, w.email); err != nil {
		return err
	}
	people.SetLogin(tx, rec, u, w.login)
	u.FirstName, u.LastName = w.first, w.last
	if w.role != "" && w.role != u.Role {
		if u.Stopped { // counted when it is back
			u.Role = w.role
			return people.Save(tx, rec, u, c.Actor())
		}
		return people.SetRole(tx, rec, u, w.role, c.Actor())
	}
	return people.Save(tx, rec, u, c.Actor())
}

// finish does what follows from a change, in parts, and shows the user. Each part can be
// done again.
func (f *family) finish(c *admin.Call, id string, w *wanted) (any, error) {
	with := func(step func(tx *resource.Tx, rec *resource.Record, u *people.User) (bool, error)) error {
		return f.rounds(c, func(tx *resource.Tx) (bool, error) {
			rec, u, ok, err := people.Known(tx, c.Organisation(), id)
			if err != nil || !ok {
				return false, err
			}
			return step(tx, &rec, u)
		})
	}
	steps := []func(tx *resource.Tx, rec *resource.Record, u *people.User) (bool, error){
		func(tx *resource.Tx, rec *resource.Record, u *people.User) (bool, error) {
			return people.Readdress(tx, rec, u, c.Actor())
		},
	}
	if w.demoted {
		steps = append(steps, func(tx *resource.Tx, rec *resource.Record, u *people.User) (bool, error) {
			if u.RunsOrganisation() || u.Stopped {
				return false, nil
			}
			more, err := people.Sweep(tx, c.Resources, rec, u)
			if err != nil {
				return false, err
			}
			return more, people.Save(tx, rec, u, c.Actor()) // so that no key is made meanwhile unseen
		})
	}
	if w.active {
		steps = append(steps, func(tx *resource.Tx, rec *resource.Record, u *people.User) (bool, error) {
			return people.Revive(tx, c.Resources, rec, u, c.Actor())
		})
	} else {
		steps = append(steps, func(tx *resource.Tx, rec *resource.Record, u *people.User) (bool, error) {
			return people.Stop(tx, c.Resources, rec, u, c.Actor())
		}, func(tx *resource.Tx, _ *resource.Record, _ *people.User) (bool, error) {
			return f.Sessions.EndAll(tx, c.Organisation().Org, id, "")
		})
	}
	for _, step := range steps {
		if err := with(step); err != nil {
			return nil, err
		}
	}
	if w.groups != nil {
		if err := f.putInto(c, id, w.groups); err != nil {
			return nil, err
		}
	}
	if err := f.settle(c, nil, true, id); err != nil {
		return nil, err
	}
	rec, u, err := f.user(c, id)
	if err != nil {
		return nil, err
	}
	return f.shownUser(c, rec, u)
}

// putInto makes the groups of a user those that were written with it.
func (f *family) putInto(c *admin.Call, id string, groups []string) error {
	return f.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, u, ok, err := people.Known(tx, c.Organisation(), id)
		if err != nil || !ok {
			return false, err
		}
		n := 0
		for _, g := range slices.Clone(u.Groups) {
			if !slices.Contains(groups, g) && n < readAtOnce/4 {
				people.Exit(tx, &rec, u, g)
				n++
			}
		}
		for _, g := range groups {
			if slices.Contains(u.Groups, g) || n >= readAtOnce/4 {
				continue
			}
			if err := people.Enter(tx, &rec, u, g); err != nil {
				return false, err
			}
			n++
		}
		if n == 0 {
			return false, nil
		}
		return true, people.Save(tx, &rec, u, c.Actor())
	})
}

// settle gives users the workspaces of their groups. ended are mappings that the call
// takes back. last puts the call into the audit log.
func (f *family) settle(c *admin.Call, ended map[[2]string]bool, last bool, ids ...string) error {
	done := 0 // users that are settled, as it was committed
	for {
		next, more := done, false
		change := func(tx *resource.Tx) (bool, error) {
			next, more = done, false
			s := &people.Settling{Resources: c.Resources, Sealer: c.Sealer, Actor: c.Actor(), Ended: ended, Room: people.RoomToSettle}
			for next < len(ids) {
				rec, u, ok, err := people.Known(tx, c.Organisation(), ids[next])
				if err != nil {
					return false, err
				}
				if ok {
					if more, err = s.Settle(tx, &rec, u); err != nil {
						return false, err
					}
				}
				if more {
					return false, nil
				}
				next++
			}
			return false, nil
		}
		if err := f.rounds(c, change); err != nil {
			return err
		}
		if done = next; done == len(ids) && !more {
			break
		}
	}
	if !last {
		return nil
	}
	return c.Change(func(*resource.Tx) error { return nil })
}

func (f *family) deleteUser(c *admin.Call) (any, error) {
	id := c.Param("scimId")
	c.About(id)
	rec, _, err := f.user(c, id)
	if err != nil {
		return nil, err
	}
	if err := unchanged(c, rec); err != nil {
		return nil, err
	}
	err = admin.Rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, ok, err := tx.Get(c.Organisation(), people.KindUser, id)
		if err != nil || !ok {
			return false, err
		}
		u, err := people.DecodeUser(rec)
		if err != nil {
			return false, err
		}
		more, err := f.Sessions.EndAll(tx, c.Organisation().Org, id, "")
		if err != nil || more {
			return more, err
		}
		return people.Remove(tx, c.Resources, &rec, u, c.Actor())
	})
	return admin.Answer{Status: http.StatusNoContent}, err
}
