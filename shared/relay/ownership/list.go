package ownership

import (
	"context"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/wire"
)

var listKeys = wire.NewKeySet("data", "first_id", "last_id", "has_more")

// Part is the workspace's own part of a page of a list.
type Part struct {
	List    []byte // the page, with these entries only
	Entries int    // how many
	Last    string // id of the provider's last entry
	More    bool   // whether further ones follow it
}

// Divide leaves in a list only what the workspace made.
func (o *Owners) Divide(ctx context.Context, sc store.Scope, wall *Wall, list []byte) (Part, error) {
	refused := fault.New(fault.NotAllowed, "provider", "The credential is shared by several workspaces, and this list cannot be filtered by workspace")
	var w wire.Walk
	if listKeys.Walk(list, &w) != nil || !w.Spans[0].Present(list) || wire.KindOf(w.Spans[0].Of(list)) != wire.KindArray {
		return Part{}, refused
	}
	var entries [][]byte
	var ids []string
	d := wire.NewDecoder(w.Spans[0].Of(list))
	for range d.Array {
		raw := d.Raw()
		var inner wire.Walk
		if wire.KindOf(raw) != wire.KindObject || linked.Walk(raw, &inner) != nil {
			return Part{}, refused
		}
		id, _ := wire.ScanString(inner.Spans[0].Of(raw), "id")
		entries, ids = append(entries, raw), append(ids, id)
	}
	if d.Err() != nil {
		return Part{}, refused
	}
	who, err := o.of(ctx, sc, wall.Places, ids)
	if err != nil {
		return Part{}, fault.Unavailable(err)
	}
	var own Part
	data, first, final := []byte{'['}, "", ""
	for i, raw := range entries {
		if who[ids[i]] != sc.Workspace {
			continue
		}
		if own.Entries++; own.Entries > 1 {
			data = append(data, ',')
		} else {
			first = ids[i]
		}
		data, final = append(data, raw...), ids[i]
	}
	edits := []wire.Edit{wire.Replace(w.Spans[0], append(data, ']'))}
	for i, id := range map[int]string{1: first, 2: final} {
		if w.Spans[i].Present(list) {
			edits = append(edits, wire.Replace(w.Spans[i], nullable(id)))
		}
	}
	if len(ids) > 0 {
		own.Last = ids[len(ids)-1]
	}
	own.More = w.Spans[3].Present(list) && string(w.Spans[3].Of(list)) == "true"
	own.List = wire.Splice(nil, list, edits...)
	return own, nil
}

// nullable writes "" as null.
func nullable(s string) []byte {
	if s == "" {
		return []byte("null")
	}
	return wire.AppendJSONString(nil, s)
}
