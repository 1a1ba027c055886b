package scim

import (
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin/scim"
)

// readAtOnce is how many records are read together.
const readAtOnce = 100

func (f *users) getUser(c *admin.Call) (any, error) {
	rec, u, err := f.user(c, c.Param("scimId"))
	if err != nil {
		return nil, err
	}
	return f.shownUser(c, rec, u)
}

// user reads a user, also one who is stopped.
func (f *users) user(c *admin.Call, id string) (*resource.Record, *membership.User, error) {
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), membership.KindUser, id)
	if err != nil {
		return nil, nil, err
	}
	if !ok || rec.ID != id {
		return nil, nil, missing(c)
	}
	u, err := membership.DecodeUser(rec)
	if err == nil && u.Leaving && !u.Stopped {
		err = missing(c)
	}
	return &rec, u, err
}

func (f *users) shownUser(c *admin.Call, rec *resource.Record, u *membership.User) (any, error) {
	groups, err := f.groupNames(c, u.Groups)
	if err != nil {
		return nil, err
	}
	doc, err := userDoc(f.family.base(c), rec, u, groups)
	if err != nil {
		return nil, err
	}
	return respond(c, rec, doc), nil
}

// groupNames are the names of groups by their ids.
func (f *users) groupNames(c *admin.Call, ids []string) (map[string]string, error) {
	out := map[string]string{}
	if len(ids) == 0 {
		return out, nil
	}
	rows, err := c.Resources.List(c.Context, c.Organisation(), membership.KindGroup)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		out[rows[i].ID] = rows[i].Name
	}
	return out, nil
}

func (f *users) listUsers(c *admin.Call) (any, error) {
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
		filterAttributes(c, docs...)
		return listed(len(rows), start, docs), nil
	}
	docs, err := f.userDocs(c, rows, filter)
	if err != nil {
		return nil, err
	}
	from, until, start := page(c, len(docs))
	filterAttributes(c, docs[from:until]...)
	return listed(len(docs), start, docs[from:until]), nil
}

func filterOf(c *admin.Call) (*scim.Filter, error) {
	if text := strings.TrimSpace(c.Query.Text("filter")); text != "" {
		return scim.ParseFilter(text)
	}
	return nil, nil
}

// userRows are the users that may match a filter, oldest first.
func (f *users) userRows(c *admin.Call, filter *scim.Filter) ([]resource.Row, error) {
	if filter != nil {
		if name, ok := filter.Equals("userName"); ok {
			id, ok, err := membership.ByLogin(c.Context, c.Resources, c.Organisation(), name)
			if err != nil || !ok {
				return nil, err
			}
			return []resource.Row{{ID: id}}, nil
		}
		if id, ok := filter.Equals("id"); ok {
			return []resource.Row{{ID: id}}, nil
		}
	}
	live, err := c.Resources.List(c.Context, c.Organisation(), membership.KindUser)
	if err != nil {
		return nil, err
	}
	stopped, err := c.Resources.ListArchived(c.Context, c.Organisation(), membership.KindUser)
	if err != nil {
		return nil, err
	}
	return ordered(filter, live, stopped), nil
}

// ordered joins lists, oldest first. Users that do not match a filter by externalId are
// left out.
func ordered(filter *scim.Filter, lists ...[]resource.Row) []resource.Row {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b resource.Row) int { return strings.Compare(a.Order, b.Order) })
	if filter != nil {
		if id, ok := filter.Equals("externalId"); ok {
			return slices.DeleteFunc(all, func(r resource.Row) bool { return r.Fields[membership.FieldExternal] != id })
		}
	}
	return all
}

// userDocs reads users, and omits those that do not match the filter.
func (f *users) userDocs(c *admin.Call, rows []resource.Row, filter *scim.Filter) (out []map[string]any, err error) {
	base := f.family.base(c)
	var groups map[string]string
	for part := range slices.Chunk(rows, readAtOnce) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		recs, err := c.Resources.GetMany(c.Context, c.Organisation(), membership.KindUser, ids)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			u, err := membership.DecodeUser(recs[i])
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

// sent returns the complete user that a client sends.
func (f *users) sent(c *admin.Call) (map[string]any, error) {
	sent, err := body(c)
	if err != nil {
		return nil, err
	}
	schema, err := f.schema(c)
	if err != nil {
		return nil, err
	}
	return schema.Read(sent)
}

func (f *users) createUser(c *admin.Call) (any, error) {
	doc, err := f.sent(c)
	if err != nil {
		return nil, err
	}
	w, err := f.wanted(c, doc, &membership.User{})
	if err != nil {
		return nil, err
	}
	id, err := f.make(c, w)
	if err != nil {
		return nil, err
	}
	c.SetResource(id)
	return f.finish(c, id, w)
}

// make makes a user, or accepts the open invitation of that user.
func (f *users) make(c *admin.Call, w *wanted) (id string, err error) {
	taken := fault.New(fault.Conflict, "userName", "another user of the organization already has this name or address")
	if _, there, err := membership.ByLogin(c.Context, c.Resources, c.Organisation(), w.login.UserName); err != nil || there {
		if there {
			err = taken
		}
		return "", err
	}
	var invited *membership.Acceptance
	err = f.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		if invited == nil {
			invite, pending, err := membership.PendingFor(tx, c.Organisation(), w.email)
			if err != nil {
				return false, err
			}
			if pending {
				invited = &membership.Acceptance{Org: c.Organisation(), ID: invite, Verified: true, Claim: c.RequestID, Rows: 4 + identity.RowsOfKey, FirstName: w.first, LastName: w.last, OnJoin: f.handed(c)}
			}
		}
		if invited != nil {
			more, err := invited.Step(tx)
			if invited.User != nil {
				id = invited.User.ID
			}
			return more, err
		}
		rec, err := membership.Create(tx, c.Organisation(), &membership.User{Email: w.email, FirstName: w.first, LastName: w.last, Role: membership.Member}, c.Actor())
		if err != nil {
			if fault.Is(err, fault.Conflict) {
				err = taken
			}
			return false, err
		}
		id = rec.ID
		u, err := membership.DecodeUser(*rec)
		if err != nil {
			return false, err
		}
		return false, f.write(tx, c, rec, u, w)
	})
	if fault.Is(err, fault.Conflict) {
		err = taken // by a call at the same time
	}
	if err != nil || invited == nil {
		return id, err
	}
	return id, f.family.rounds(c, func(tx *resource.Tx) (bool, error) {
		rec, u, ok, err := membership.FindUser(tx, c.Organisation(), id)
		if err != nil || !ok {
			return false, err
		}
		return false, f.write(tx, c, &rec, u, w)
	})
}

// handed gives a key to a user who joins a workspace by an invitation, if the invitation
// reports it. The user collects the key.
func (f *users) handed(c *admin.Call) func(tx *resource.Tx, user *resource.Record, workspace string, i *membership.Invite) error {
	return func(tx *resource.Tx, user *resource.Record, workspace string, i *membership.Invite) error {
		_, _, err := membership.CreateUserKeyIfRequested(tx, c.Resources, c.Sealer, workspace, user, i)
		return err
	}
}
