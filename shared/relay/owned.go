package relay

import (
	"context"
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// owners knows which workspace made what a provider keeps under a credential of
// the organisation, or under one that several workspaces have saved. A row stands
// below the organisation and the credential, and below the integration, so that
// every workspace that uses either finds it.
type owners struct {
	now   func() time.Time
	table store.Table
}

// Lifetimes of rows. A row that is used in the second half of its life begins a
// new one.
const (
	ownedFor  = 400 * 24 * time.Hour
	renewWhen = ownedFor / 2
	maxID     = 512 // bytes; longer ids are not known
)

func ownedKey(sc store.Scope, place, id string) store.Key {
	return sc.Organisation().Partition("OWNED", place).Key(id)
}

// own notes that a workspace made things. What another workspace made stays that
// workspace's.
func (o *owners) own(ctx context.Context, sc store.Scope, places []string, slug string, ids ...string) error {
	until := o.now().Add(ownedFor)
	for _, id := range ids {
		if id == "" || len(id) > maxID {
			continue
		}
		for _, place := range places {
			row := store.Row{Key: ownedKey(sc, place, id), Item: store.Item{"workspace": sc.Workspace, "slug": slug, "until": until.Unix()}, Expires: until}
			if err := o.table.Put(ctx, row, store.IfAbsent()); err != nil {
				if _, there := store.AsCondition(err); !there {
					return err
				}
			}
		}
	}
	return nil
}

// of gives the workspaces that made the ids, by the first of the places that knows;
// those that nobody made through the gateway are missing.
func (o *owners) of(ctx context.Context, sc store.Scope, places []string, ids []string) (map[string]string, error) {
	keys := make([]store.Key, 0, len(places)*len(ids))
	for _, place := range places {
		for _, id := range ids {
			if id != "" && len(id) <= maxID {
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
	items, err := o.table.GetMany(ctx, unique)
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

// renew keeps the row of a thing that is in use.
func (o *owners) renew(ctx context.Context, sc store.Scope, key store.Key, item store.Item) {
	if item.String("workspace") != sc.Workspace || o.now().Add(ownedFor-renewWhen).Before(time.Unix(item.Int("until"), 0)) {
		return
	}
	until := o.now().Add(ownedFor)
	_, _, _ = o.table.Update(ctx, store.Update{ // the old life goes on without it
		Key: key, Set: []store.Assign{{Path: store.At("until"), Value: until.Unix()}}, Expires: until,
		If: []store.Cond{store.IfEqual(store.At("workspace"), sc.Workspace)},
	})
}

// missing is the answer for things that are not there and for other workspaces'.
func missing(field, id string) error {
	return fault.Newf(fault.NotFound, field, "There is nothing with the id %q", clipText(id))
}

// mayUse checks the ids that the request names against a saved provider, before
// its credential is opened.
func (o *ownerWall) mayUse(s *saved) error {
	if !o.to.wall.on {
		return nil // nobody else uses the credential
	}
	if o.rt.Client != nil {
		return nil // see mayRefer: a translated conversation sends no ids
	}
	if err := o.mayReach(s); err != nil {
		return err
	}
	if at := o.keptPath().collection; at == "responses" || at == "conversations" {
		if err := o.mayReferToItems(s); err != nil {
			return err
		}
	}
	ids, err := o.idsAsked()
	if err != nil {
		return err
	}
	return o.check(s, ids)
}

// mayReferToItems refuses items that the provider keeps where several workspaces
// use the credential: responses do not tell whose items they are.
func (o *ownerWall) mayReferToItems(s *saved) error {
	if !o.to.wall.shared || o.form != nil {
		return nil
	}
	if field := referredItem(o.in); field != "" {
		return fault.Newf(fault.NotAllowed, field, "%s refers to an item that the provider keeps, and the credential is shared by several workspaces: use previous_response_id, or send the item itself", field)
	}
	return nil
}

// mayReach refuses paths that cannot be read in one way only, and bodies whose
// ids cannot be read.
func (o *ownerWall) mayReach(s *saved) error {
	if o.keptPath().collection == "" || !o.to.wall.shared {
		return nil
	}
	if o.keptPath().evasive {
		return missing("path", o.req.URL.EscapedPath())
	}
	if o.unread && o.form == nil && !o.multipart() {
		return fault.New(fault.InvalidContentType, "content-type", "The credential is shared by several workspaces: send the body as plain JSON, so that the things that it names can be checked")
	}
	return nil
}

// idsAsked are the ids of stored things in path, query and body.
func (o *ownerWall) idsAsked() ([]namedID, error) {
	var ids []namedID
	switch {
	case o.keptPath().collection == "models":
		if o.req.Method == http.MethodDelete {
			ids = append(ids, namedID{"model", o.keptPath().id})
		}
	case o.keptPath().id != "":
		ids = append(ids, namedID{"id", o.keptPath().id})
	case o.keptPath().lists() && o.req.Method == http.MethodGet && o.req.URL.RawQuery != "":
		q := o.req.URL.Query()
		for _, name := range []string{"after", "before", "after_id", "before_id"} {
			if v := q.Get(name); v != "" {
				ids = append(ids, namedID{name, v})
			}
		}
	}
	if o.form != nil || len(o.in) == 0 || o.unread || o.keptPath().collection == "" && !mayNameIDs(o.in) {
		return ids, nil
	}
	more, err := idsIn(o.in)
	return append(ids, more...), err
}

// mayRefer checks the ids in the body of a conversation whose bytes go to the
// provider as they came.
func (o *ownerWall) mayRefer() error {
	s := o.to.saved
	if o.rt.Client == nil || s == nil || !o.to.wall.on || !o.sameDialect() {
		return nil
	}
	if o.rt.Operation == provider.ResponsesCreate {
		if err := o.mayReferToItems(s); err != nil {
			return err
		}
	}
	if !mayNameIDs(o.in) {
		return nil
	}
	ids, err := idsIn(o.in)
	if err != nil {
		return err
	}
	return o.check(s, ids)
}

// check refuses ids of other workspaces and, where several workspaces use the
// credential, ids that nobody made through the gateway.
func (o *ownerWall) check(s *saved, ids []namedID) error {
	if len(ids) == 0 {
		return nil
	}
	names := make([]string, len(ids))
	for i := range ids {
		names[i] = ids[i].id
	}
	who, err := o.owners.of(o.ctx, o.who.Scope, o.to.wall.places, names)
	if err != nil {
		return fault.Unavailable(err)
	}
	for _, n := range ids {
		owner, known := who[n.id]
		if known && owner != o.who.Scope.Workspace || !known && o.to.wall.shared {
			return missing(n.field, n.id)
		}
	}
	return nil
}

// keep notes whose the things are that an answer tells of. It is called before
// the client can know the ids.
func (o *ownerWall) keep(answer []byte) error {
	if !o.keeps() || o.keptPath().collection == "" {
		return nil
	}
	return o.keepIDs(thingsOf(answer, o.makes())...)
}

// keepIDs notes that the workspace of the request made things.
func (o *ownerWall) keepIDs(ids ...string) error {
	if !o.keeps() || len(ids) == 0 {
		return nil
	}
	err := o.owners.own(o.ctx, o.who.Scope, o.to.wall.places, o.to.saved.slug, ids...)
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// filtered tells whether the answer is a list that holds things of several
// workspaces.
func (o *ownerWall) filtered() bool {
	return o.to.saved != nil && o.to.wall.shared && o.req.Method == http.MethodGet && o.keptPath().lists()
}

var listKeys = wire.NewKeySet("data", "first_id", "last_id", "has_more")

// ownPart leaves in a list only what the workspace made. last is the id of the
// provider's last entry, more whether further ones follow.
func (o *ownerWall) ownPart(list []byte) (out []byte, left int, last string, more bool, err error) {
	refused := fault.New(fault.NotAllowed, "provider", "The credential is shared by several workspaces, and this list cannot be divided between them")
	var w wire.Walk
	if listKeys.Walk(list, &w) != nil || !w.Spans[0].Present(list) || wire.KindOf(w.Spans[0].Of(list)) != wire.KindArray {
		return nil, 0, "", false, refused
	}
	var entries [][]byte
	var ids []string
	d := wire.NewDecoder(w.Spans[0].Of(list))
	for range d.Array {
		raw := d.Raw()
		var inner wire.Walk
		if wire.KindOf(raw) != wire.KindObject || linked.Walk(raw, &inner) != nil {
			return nil, 0, "", false, refused
		}
		id, _ := wire.ScanString(inner.Spans[0].Of(raw), "id")
		entries, ids = append(entries, raw), append(ids, id)
	}
	if d.Err() != nil {
		return nil, 0, "", false, refused
	}
	who, err := o.owners.of(o.ctx, o.who.Scope, o.to.wall.places, ids)
	if err != nil {
		return nil, 0, "", false, fault.Unavailable(err)
	}
	data, first, final := []byte{'['}, "", ""
	for i, raw := range entries {
		if who[ids[i]] != o.who.Scope.Workspace {
			continue
		}
		if left++; left > 1 {
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
		last = ids[len(ids)-1]
	}
	more = w.Spans[3].Present(list) && string(w.Spans[3].Of(list)) == "true"
	return wire.Splice(nil, list, edits...), left, last, more, nil
}

// nullable writes "" as null.
func nullable(s string) []byte {
	if s == "" {
		return []byte("null")
	}
	return wire.AppendJSONString(nil, s)
}
