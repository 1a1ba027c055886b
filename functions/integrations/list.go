package integrations

import (
	"errors"
	"slices"
	"sync"

	"gateway/shared/admin"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// placed is a list row with the scope that it is in.
type placed struct {
	resource.Row
	scope store.Scope
}

// list gives the integrations that the caller may list: the organisation's, and
// those of the named workspace, the key's own, or with an organisation key of
// every workspace. In a workspace only those of the organisation's are listed
// that are open to it.
func (f *family) list(c *admin.Call) (any, error) {
	page, err := f.col.List.Paging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	rows, err := rowsOf(c)
	if err != nil {
		return nil, err
	}
	part := admin.Cut(rows, page)
	recs, err := recordsOf(c, part)
	if err != nil {
		return nil, err
	}
	data := make([]any, 0, len(part))
	for _, row := range part {
		rec, ok := recs[row.ID]
		if !ok {
			continue // deleted meanwhile
		}
		i, err := provider.DecodeIntegration(rec)
		if err != nil {
			return nil, err
		}
		data = append(data, brief(&rec, i))
	}
	return admin.ListEnvelope(data, len(rows), page), nil
}

func rowsOf(c *admin.Call) ([]placed, error) {
	wanted := c.Query.Text("type")
	shared := wanted != typeWorkspace && c.Caller.HasAny([]string{ofOrganisation + ".list"})
	own := wanted != typeOrganisation && c.Caller.HasAny([]string{ofWorkspace + ".list"})
	if !shared && !own {
		return nil, admin.Denied()
	}
	var all []placed
	if shared {
		rows, err := c.Resources.List(c.Context, c.Organisation(), provider.KindIntegration)
		if err != nil {
			return nil, err
		}
		if rows, err = open(c, rows); err != nil {
			return nil, err
		}
		all = appendRows(all, c, c.Organisation(), rows)
	}
	if own {
		scopes, err := workspacesOf(c)
		if err != nil {
			return nil, err
		}
		lists, err := listsOf(c, scopes)
		if err != nil {
			return nil, err
		}
		for n, sc := range scopes {
			all = appendRows(all, c, sc, lists[n])
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// workspacesOf are the workspaces that a list covers.
func workspacesOf(c *admin.Call) ([]store.Scope, error) {
	if c.Scope.Workspace != "" {
		return []store.Scope{c.Scope}, nil
	}
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	out := make([]store.Scope, len(spaces))
	for i := range spaces {
		out[i] = store.Scope{Org: c.Scope.Org, Workspace: spaces[i].ID}
	}
	return out, nil
}

// readers is how many lists are read at a time.
const readers = 16

// listsOf reads the integrations of many scopes, in their order.
func listsOf(c *admin.Call, scopes []store.Scope) ([][]resource.Row, error) {
	lists, errs := make([][]resource.Row, len(scopes)), make([]error, len(scopes))
	var wg sync.WaitGroup
	for first := range min(readers, len(scopes)) {
		wg.Go(func() {
			for n := first; n < len(scopes); n += readers {
				lists[n], errs[n] = c.Resources.List(c.Context, scopes[n], provider.KindIntegration)
			}
		})
	}
	wg.Wait()
	return lists, errors.Join(errs...)
}

// open keeps the rows of the organisation's integrations that the call's
// workspace may use; all of them when it acts in the organisation.
func open(c *admin.Call, rows []resource.Row) ([]resource.Row, error) {
	if c.Scope.Workspace == "" || len(rows) == 0 {
		return rows, nil
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	recs, err := c.Resources.GetMany(c.Context, c.Organisation(), provider.KindIntegration, ids)
	if err != nil {
		return nil, err
	}
	usable := make(map[string]bool, len(recs))
	for n := range recs {
		i, err := provider.DecodeIntegration(recs[n])
		if err != nil {
			return nil, err
		}
		usable[recs[n].ID] = i.OpenTo(&recs[n], c.Scope.Workspace)
	}
	var out []resource.Row
	for _, row := range rows {
		if usable[row.ID] {
			out = append(out, row)
		}
	}
	return out, nil
}

func appendRows(to []placed, c *admin.Call, sc store.Scope, rows []resource.Row) []placed {
	tags := c.Query.TextMap("tags")
	for _, row := range rows {
		if hasTags(row.Tags, tags) {
			to = append(to, placed{row, sc})
		}
	}
	return to
}

func hasTags(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// recordsOf reads the records of a page, by id.
func recordsOf(c *admin.Call, part []placed) (map[string]resource.Record, error) {
	ids := make(map[store.Scope][]string)
	for _, row := range part {
		ids[row.scope] = append(ids[row.scope], row.ID)
	}
	out := make(map[string]resource.Record, len(part))
	for sc, of := range ids {
		recs, err := c.Resources.GetMany(c.Context, sc, provider.KindIntegration, of)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			out[recs[i].ID] = recs[i]
		}
	}
	return out, nil
}
