package ownership

import (
	"context"
	"slices"
	"time"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// Owners records which workspace created an object that a provider stores under a credential of
// the organization, or under one that several workspaces have saved. A row is stored below the
// organization and the credential, and below the integration, so that every workspace that uses
// either finds it.
type Owners struct {
	Now   func() time.Time
	Table store.Table
}

// MaxID is the maximum length of an id in bytes; longer ones are not recorded.
const MaxID = 512

// Lifetimes of rows. The use of a row in the second half of its lifetime renews it.
const (
	ownedFor  = 400 * 24 * time.Hour
	renewWhen = ownedFor / 2
)

func ownedKey(sc store.Scope, place, id string) store.Key {
	return sc.Organisation().Partition("OWNED", place).Key(id)
}

// Record records that a workspace created objects. It does not change the owner of an object that
// another workspace created.
func (o *Owners) Record(ctx context.Context, sc store.Scope, places []string, slug string, ids ...string) error {
	until := o.Now().Add(ownedFor)
	for _, id := range ids {
		if id == "" || len(id) > MaxID {
			continue
		}
		for _, place := range places {
			row := store.Row{Key: ownedKey(sc, place, id), Item: store.Item{"workspace": sc.Workspace, "slug": slug, "until": until.Unix()}, Expires: until}
			if err := o.Table.Put(ctx, row, store.IfAbsent()); err != nil {
				if _, there := store.AsCondition(err); !there {
					return err
				}
			}
		}
	}
	return nil
}

// of returns the workspaces that created the ids, by the first of the places with a row; ids
// that were not created through the gateway are missing.
func (o *Owners) of(ctx context.Context, sc store.Scope, places []string, ids []string) (map[string]string, error) {
	keys := make([]store.Key, 0, len(places)*len(ids))
	for _, place := range places {
		for _, id := range ids {
			if id != "" && len(id) <= MaxID {
				keys = append(keys, ownedKey(sc, place, id))
			}
		}
	}
	order := make(map[store.Key]bool, len(keys))
	unique := keys[:0:0]
	for _, key := range keys {
		if !order[key] {
			order[key], unique = true, append(unique, key)
		}
	}
	items, err := o.Table.GetMany(ctx, unique)
	if err != nil {
		return nil, err
	}
	who := make(map[string]string, len(items))
	for _, key := range unique {
		item, there := items[key]
		if !there {
			continue
		}
		if _, known := who[key.SK()]; !known {
			who[key.SK()] = item.String("workspace")
		}
		o.renew(ctx, sc, key, item)
	}
	return who, nil
}

// Lookup returns the workspaces that created objects at one place; those that were not created
// through the gateway are missing.
func (o *Owners) Lookup(ctx context.Context, sc store.Scope, place string, ids []string) (map[string]string, error) {
	return o.of(ctx, sc, []string{place}, ids)
}

// renew extends the lifetime of an object's row while it is in use.
func (o *Owners) renew(ctx context.Context, sc store.Scope, key store.Key, item store.Item) {
	if item.String("workspace") != sc.Workspace || o.Now().Add(ownedFor-renewWhen).Before(time.Unix(item.Int("until"), 0)) {
		return
	}
	until := o.Now().Add(ownedFor)
	_, _, _ = o.Table.Update(ctx, store.Update{ // on an error the old lifetime remains
		Key: key, Set: []store.Assign{{Path: store.At("until"), Value: until.Unix()}}, Expires: until,
		If: []store.Cond{store.IfEqual(store.At("workspace"), sc.Workspace)},
	})
}

// Missing returns the fault for missing objects and for those of other workspaces.
func Missing(field, id string) error {
	return fault.Newf(fault.NotFound, field, "There is no object with the id %q", fault.Clip(id, 300))
}

// FindForeign returns the ids of those items that are not the workspace's: of other workspaces and,
// where several workspaces use the credential, items that were not created through the gateway.
// It fails with the fault of a missing object for a foreign item that the provider would look
// up.
func (o *Owners) FindForeign(ctx context.Context, sc store.Scope, w *TenantIsolation, items []reference.Item) (map[string]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if len(items) > maxIDs {
		return nil, fault.Invalid(items[maxIDs].Field, "is one of more than %d items with ids: omit the ids of complete items", maxIDs)
	}
	names := make([]string, len(items))
	for i := range items {
		names[i] = items[i].ID
	}
	who, err := o.of(ctx, sc, w.Places, names)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	foreign := map[string]bool{}
	for i := range items {
		owner, known := who[items[i].ID]
		switch {
		case owner == sc.Workspace, !known && !w.Shared:
		case items[i].Reference:
			return nil, fault.Newf(fault.NotFound, items[i].Field, "Item with id %q not found: only items created by this workspace can be referenced by id; send other items completely", fault.Clip(items[i].ID, 300))
		default:
			foreign[items[i].ID] = true
		}
	}
	return foreign, nil
}

// OwnItems is Record for the items of a response, which are many and may have been recorded before.
func (o *Owners) OwnItems(ctx context.Context, sc store.Scope, places []string, slug string, ids []string) error {
	known, err := o.of(ctx, sc, places, ids)
	if err != nil {
		return err
	}
	until, rows := o.Now().Add(ownedFor), []store.Row(nil)
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if _, ok := known[id]; ok || id == "" || len(id) > MaxID {
			continue
		}
		for _, place := range places {
			rows = append(rows, store.Row{Key: ownedKey(sc, place, id), Item: store.Item{"workspace": sc.Workspace, "slug": slug, "until": until.Unix()}, Expires: until})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return o.Table.PutMany(ctx, rows)
}

// Check rejects ids of other workspaces and, where several workspaces use the credential, ids
// that were not created through the gateway.
func (o *Owners) Check(ctx context.Context, sc store.Scope, w *TenantIsolation, ids []Named) error {
	if len(ids) == 0 {
		return nil
	}
	names := make([]string, len(ids))
	for i := range ids {
		names[i] = ids[i].ID
	}
	who, err := o.of(ctx, sc, w.Places, names)
	if err != nil {
		return fault.Unavailable(err)
	}
	for _, n := range ids {
		owner, known := who[n.ID]
		if known && owner != sc.Workspace || !known && w.Shared && !n.Published {
			return Missing(n.Field, n.ID)
		}
	}
	return nil
}

// Order is a video that a provider makes in its own time, as it was ordered.
type Order struct {
	Model, Size string
	Seconds     int64
}

func orderKey(sc store.Scope, place, id string) store.Key {
	return sc.Partition("ORDER", place).Key(id)
}

// StoreOrder stores an order below each of the places where its provider knows the id.
func StoreOrder(ctx context.Context, o *Owners, sc store.Scope, places []string, id string, v Order) error {
	for _, place := range places {
		err := o.Table.Put(ctx, store.Row{
			Key:     orderKey(sc, place, id),
			Item:    store.Item{"model": v.Model, "size": v.Size, "seconds": v.Seconds},
			Expires: o.Now().Add(ownedFor),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// FindOrder returns what StoreOrder has stored at the first of the places that has it; ok is false
// if none has.
func FindOrder(ctx context.Context, o *Owners, sc store.Scope, places []string, id string) (v Order, ok bool, err error) {
	for _, place := range places {
		item, there, err := o.Table.Get(ctx, orderKey(sc, place, id), true)
		if err != nil {
			return v, false, err
		}
		if there {
			return Order{item.String("model"), item.String("size"), item.Int("seconds")}, true, nil
		}
	}
	return v, false, nil
}

// turnLife is how long providers store a response or an interaction by default.
const turnLife = 30 * 24 * time.Hour

// Turn is a response or an interaction that a later request may continue.
type Turn struct {
	RequestedModel, ResponseModel string // its model, as the request and as the response name it
	Tokens                        int64  // input and output tokens: the input of the next turn
}

// MadeBy reports whether the turn was made by the model. Others may count the same content
// differently.
func (t Turn) MadeBy(model string) bool {
	return model != "" && (model == t.RequestedModel || model == t.ResponseModel)
}

func turnKey(sc store.Scope, place, id string) store.Key {
	return sc.Partition("TURN", place).Key(id)
}

// StoreTurn stores the size of a turn, at the place where its provider stores the id.
func StoreTurn(ctx context.Context, o *Owners, sc store.Scope, place, id string, t Turn) error {
	if id == "" || len(id) > MaxID {
		return nil
	}
	return o.Table.Put(ctx, store.Row{
		Key:     turnKey(sc, place, id),
		Item:    store.Item{"asked": t.RequestedModel, "answered": t.ResponseModel, "tokens": t.Tokens},
		Expires: o.Now().Add(turnLife),
	})
}

// FindTurn returns what StoreTurn has stored; ok is false if it has not stored anything.
func FindTurn(ctx context.Context, o *Owners, sc store.Scope, place, id string) (t Turn, ok bool, err error) {
	if id == "" || len(id) > MaxID {
		return t, false, nil
	}
	item, there, err := o.Table.Get(ctx, turnKey(sc, place, id), true)
	if err != nil || !there {
		return t, false, err
	}
	return Turn{item.String("asked"), item.String("answered"), item.Int("tokens")}, true, nil
}

var listKeys = wire.NewKeySet("data", "first_id", "last_id", "has_more")

// Part is the workspace's own part of a page of a list.
type Part struct {
	List    []byte // the page, with these entries only
	Entries int    // how many
	Last    string // id of the provider's last entry
	More    bool   // whether further ones follow it
}

// Divide leaves in a list only what the workspace made.
func (o *Owners) Divide(ctx context.Context, sc store.Scope, wall *TenantIsolation, list []byte) (Part, error) {
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
	own := 0
	data, first, final := []byte{'['}, "", ""
	for i, raw := range entries {
		if who[ids[i]] != sc.Workspace {
			continue
		}
		if own++; own > 1 {
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
	last := ""
	if len(ids) > 0 {
		last = ids[len(ids)-1]
	}
	more := w.Spans[3].Present(list) && string(w.Spans[3].Of(list)) == "true"
	return Part{wire.Splice(nil, list, edits...), own, last, more}, nil
}

// nullable writes "" as null.
func nullable(s string) []byte {
	if s == "" {
		return []byte("null")
	}
	return wire.AppendJSONString(nil, s)
}
