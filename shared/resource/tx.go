package resource

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Tx collects one change of an organization. Reads go to the store at once; writes are
// staged and become one transaction when the closure returns. A closure may run several
// times, so it must not have any effect except on its Tx.
type Tx struct {
	ctx     context.Context
	r       *Resources
	scope   store.Scope
	now     time.Time
	batch   batch
	records map[store.Key]Record
	counts  map[countID]int64
	outbox  []Message
	deleted []Ref // their versions are removed after the commit
	lists   []listPatch
}

type countID struct {
	scope store.Scope
	kind  Kind
}

// Message is a row of the outbox: something to be sent after the commit.
type Message struct {
	ID    string // ULID; sort key of the row
	Shard int    // 0 to OutboxPartitions-1
	Topic string // names the sender, such as "audit"
	Org   string
	Body  []byte
}

// Key is the message's row in the control table.
func (m Message) Key() store.Key { return OutboxPartition(m.Shard).Key(m.ID) }

// Row is the message as stored.
func (m Message) Row() store.Row {
	return store.Row{Key: m.Key(), Item: store.Item{"topic": m.Topic, "org": m.Org, "body": m.Body}}
}

// DecodeMessage reads a row of OutboxPartition(shard).
func DecodeMessage(shard int, row store.Row) Message {
	return Message{ID: row.Key.SK(), Shard: shard, Topic: row.Item.String("topic"), Org: row.Item.String("org"), Body: row.Item.Bytes("body")}
}

// NewMessage makes a message outside of a Tx, if it belongs to no change.
func (r *Resources) NewMessage(topic, org string, body []byte) Message {
	return Message{ID: r.ids.next(r.now()), Shard: rand.IntN(OutboxPartitions), Topic: topic, Org: org, Body: body}
}

// Changed is a record in the state in which a change leaves it.
type Changed struct {
	Record
	Deleted bool // only Scope, Kind, ID and Rev are set
}

// Changed gives the records that were created, updated and deleted so far, in the
// order of their keys.
func (t *Tx) Changed() []Changed {
	out := make([]Changed, 0, len(t.records)+len(t.deleted))
	for _, rec := range t.records {
		if rec.Rev > 0 {
			out = append(out, Changed{Record: rec.clone()})
		}
	}
	for _, ref := range t.deleted {
		out = append(out, Changed{Record: Record{Scope: ref.Scope, Kind: ref.Kind, ID: ref.ID}, Deleted: true})
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(a.Scope.Workspace, b.Scope.Workspace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) < 0
	})
	return out
}

// Sequence returns the present time in Unix nanoseconds, but more than every value that this
// process returned before. A change that calls it after all its reads gets values that order
// the changes of a record by their commits.
func (t *Tx) Sequence() int64 {
	for now := t.r.now().UnixNano(); ; {
		last := t.r.sequence.Load()
		next := max(now, last+1)
		if t.r.sequence.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Context, Now and Scope are those of the change.
func (t *Tx) Context() context.Context { return t.ctx }
func (t *Tx) Now() time.Time           { return t.now }
func (t *Tx) Scope() store.Scope       { return t.scope }

// Get reads a record by id or slug, in the state in which this change leaves it. It does
// not see slugs that this change gives or takes.
func (t *Tx) Get(sc store.Scope, k Kind, idOrSlug string) (Record, bool, error) {
	if err := own(t, sc); err != nil {
		return Record{}, false, err
	}
	if !validID(idOrSlug) {
		return Record{}, false, nil
	}
	if rec, ok := t.records[recordKey(sc, k, idOrSlug)]; ok {
		return rec.clone(), rec.Rev > 0, nil
	}
	rec, ok, err := t.r.Get(t.ctx, sc, k, idOrSlug)
	if !ok || err != nil {
		return Record{}, false, err
	}
	if mine, known := t.records[recordKey(sc, k, rec.ID)]; known {
		return mine.clone(), mine.Rev > 0, nil
	}
	return rec, true, nil
}

// Create stages a new record. It fills in ID (when empty), Created, Updated, Version,
// VersionID and Rev. When the change runs, a taken slug is a fault.Conflict at "slug", and
// a full scope is a fault.QuotaReached.
func (t *Tx) Create(rec *Record) error {
	if err := own(t, rec.Scope); err != nil {
		return err
	}
	if rec.ID == "" {
		rec.ID = NewID()
	}
	if err := rec.check(); err != nil {
		return err
	}
	rec.Created = t.now.UTC().Truncate(time.Millisecond)
	rec.Updated, rec.Rev, rec.Version, rec.VersionID, rec.Latest = rec.Created, 1, 1, NewID(), 1
	rec.row, rec.storedSlug, rec.archived = t.r.ids.next(t.now), rec.Slug, rec.Archived()
	if rec.Slug != "" {
		takeSlug(t, rec)
	}
	if !rec.archived {
		t.counts[countID{rec.Scope, rec.Kind}]++
	}
	var exists error // the same
	if !rec.Looked {
		exists = fault.Newf(fault.Conflict, "id", "a %s with this id already exists", word(rec.Kind))
	}
	t.batch.put(store.Control, store.Row{Key: recordKey(rec.Scope, rec.Kind, rec.ID), Item: rec.item()}, exists, store.IfAbsent())
	list(t, rec)
	t.records[recordKey(rec.Scope, rec.Kind, rec.ID)] = rec.clone()
	return nil
}

// Update stages the record in its present state; it must have been read from this store.
// Updated and Rev are set. A changed Slug moves the slug's row. A change from or to
// StatusArchived moves the list row and the count. An archived record retains its slug unless
// FreeSlug was called.
func (t *Tx) Update(rec *Record) error {
	if err := own(t, rec.Scope); err != nil {
		return err
	}
	if rec.Rev == 0 {
		return fmt.Errorf("resource: update of a %s that was not read", rec.Kind)
	}
	if err := rec.check(); err != nil {
		return err
	}
	key, seen := recordKey(rec.Scope, rec.Kind, rec.ID), rec.Rev
	if mine, ok := t.records[key]; ok && mine.Rev == 0 {
		return fmt.Errorf("resource: update of a deleted %s", rec.Kind)
	}
	rec.Rev++
	rec.Updated = t.now.UTC().Truncate(time.Millisecond)
	if want := wantedSlug(t, rec); want != rec.storedSlug {
		dropSlug(t, rec)
		if rec.storedSlug = want; want != "" {
			takeSlug(t, rec)
		}
	}
	if rec.Archived() != rec.archived {
		unlist(t, rec)
		rec.archived = rec.Archived()
		delta := int64(1)
		if rec.archived {
			delta = -1
		}
		t.counts[countID{rec.Scope, rec.Kind}] += delta
	}
	t.batch.put(store.Control, store.Row{Key: key, Item: rec.item()}, nil, store.IfEqual(store.At("rev"), seen))
	list(t, rec)
	t.records[key] = rec.clone()
	return nil
}

// list stages the record's row in its list; unlist removes it.
func list(t *Tx, rec *Record) {
	it := rec.listItem()
	key := listKey(rec.Scope, rec.Kind, rec.row, rec.archived)
	t.batch.put(store.Control, store.Row{Key: key, Item: it}, nil)
	t.lists = append(t.lists, listPatch{list: listID{rec.Scope, rec.Kind, rec.archived}, row: decodeRow(key.SK(), it)})
}

func unlist(t *Tx, rec *Record) {
	t.batch.delete(store.Control, listKey(rec.Scope, rec.Kind, rec.row, rec.archived), nil)
	t.lists = append(t.lists, listPatch{list: listID{rec.Scope, rec.Kind, rec.archived}, row: Row{Order: rec.row}, gone: true})
}

// wantedSlug is the slug that the record should own. An archived record that has released its
// slug does not claim it again.
func wantedSlug(t *Tx, rec *Record) string {
	if rec.Archived() && rec.storedSlug == "" {
		return ""
	}
	return rec.Slug
}

// Archive is Update with StatusArchived: the record, its versions and its slug stay, but it
// leaves the list and the count of live records.
func (t *Tx) Archive(rec *Record) error {
	rec.Status = StatusArchived
	return t.Update(rec)
}

// ArchiveAndFreeSlug is Archive, but another record may take the slug. When the record gets
// another status again, it takes its slug back, or is rejected.
func (t *Tx) ArchiveAndFreeSlug(rec *Record) error {
	rec.Status = StatusArchived
	dropSlug(t, rec)
	rec.storedSlug = ""
	return t.Update(rec)
}

// Delete stages the removal of the record, its slug and its list row. Its
// versions are removed after the commit.
func (t *Tx) Delete(rec *Record) error {
	if err := own(t, rec.Scope); err != nil {
		return err
	}
	if rec.Rev == 0 {
		return fmt.Errorf("resource: delete of a %s that was not read", rec.Kind)
	}
	key := recordKey(rec.Scope, rec.Kind, rec.ID)
	dropSlug(t, rec)
	t.batch.delete(store.Control, key, nil, store.IfEqual(store.At("rev"), rec.Rev))
	unlist(t, rec)
	if !rec.archived {
		t.counts[countID{rec.Scope, rec.Kind}]--
	}
	t.deleted = append(t.deleted, rec.Ref())
	t.records[key] = Record{}
	return nil
}

// FirstVersion stages the version row of a record that was just created.
func (t *Tx) FirstVersion(rec *Record) { putVersion(t, rec, store.IfAbsent()) }

// NewVersion gives the record the next version number and id and stages its
// content under them. Call it before Update, with the new content in place.
func (t *Tx) NewVersion(rec *Record) {
	rec.Latest = max(rec.Latest, rec.Version) + 1
	rec.Version, rec.VersionID = rec.Latest, NewID()
	stageVersion(t, rec.clone())
}

// Draft makes a next version of the record that does not become its content yet, and stages
// content for it: a copy of the record with another Body. It fills in number and id. Call
// it before Update.
func (t *Tx) Draft(rec, content *Record) {
	rec.Latest = max(rec.Latest, rec.Version) + 1
	content.Version, content.VersionID, content.Latest = rec.Latest, NewID(), rec.Latest
	stageVersion(t, content.clone())
}

// Publish makes a version that was read the record's content. Call it before Update.
func (t *Tx) Publish(rec, version *Record) {
	rec.Version, rec.VersionID, rec.Body, rec.Sealed = version.Version, version.VersionID, version.Body, version.Sealed
}

func stageVersion(t *Tx, v Record) {
	v.Updated = t.now.UTC().Truncate(time.Millisecond)
	putVersion(t, &v, store.IfAbsent())
}

// UpdateVersion stages a version row that was read with Version or Versions. Only Fields,
// Tags and Status may change; content is history.
func (t *Tx) UpdateVersion(v *Record) error {
	if err := own(t, v.Scope); err != nil {
		return err
	}
	seen := v.Rev
	v.Rev++
	putVersion(t, v, store.IfEqual(store.At("rev"), seen))
	return nil
}

func putVersion(t *Tx, v *Record, cond store.Cond) {
	it := v.item()
	for _, attr := range []string{"held", "row", "latest", "labels"} {
		delete(it, attr)
	}
	t.batch.put(store.Control, store.Row{Key: versionKey(v.Scope, v.Kind, v.ID, v.Version), Item: it}, nil, cond)
}

func takeSlug(t *Tx, rec *Record) {
	var taken error // the change runs again
	if !rec.Looked {
		taken = fault.Newf(fault.Conflict, "slug", "the slug %q is already used by another %s; choose another", rec.Slug, word(rec.Kind))
	}
	row := store.Row{Key: slugKey(rec.Scope, rec.Kind, rec.Slug), Item: store.Item{"id": rec.ID}}
	t.batch.put(store.Control, row, taken, store.IfAbsent())
}

func dropSlug(t *Tx, rec *Record) {
	if rec.storedSlug != "" {
		t.batch.delete(store.Control, slugKey(rec.Scope, rec.Kind, rec.storedSlug), nil)
	}
}

// Use stages that by uses of, so that RefuseIfUsed finds it. The used record must exist
// when the change runs. Its Rev is raised, so that a concurrent deletion sees the user.
func (t *Tx) Use(of, by Ref) error {
	if err := own(t, of.Scope); err != nil {
		return err
	}
	it := store.Item{"kind": string(by.Kind), "id": by.ID}
	setString(it, "ws", by.Scope.Workspace)
	setString(it, "name", by.Name)
	t.batch.put(store.Control, store.Row{Key: useKey(of, by), Item: it}, nil)
	return t.RequireExists(of)
}

// RequireExists stages that a record must exist when the change runs, and raises its Rev, so that a
// concurrent deletion of it looks again for users.
func (t *Tx) RequireExists(of Ref) error { return hold(t, of) }

// RequireStatus is RequireExists of a record that must still have the status, for example one that must not
// be archived.
func (t *Tx) RequireStatus(of Ref, status string) error {
	return hold(t, of, store.IfEqual(store.At("status"), status))
}

func hold(t *Tx, of Ref, more ...store.Cond) error {
	if err := own(t, of.Scope); err != nil {
		return err
	}
	key := recordKey(of.Scope, of.Kind, of.ID)
	if t.batch.has(store.Control, key) {
		return nil // this change writes it already
	}
	gone := fault.Newf(fault.ReferenceNotFound, "", "the referenced %s no longer exists", word(of.Kind))
	t.batch.stage(place{store.Control, key}, staged{store.Action{Table: store.Control, Update: &store.Update{
		Key: key, Add: []store.Increment{{Path: store.At("rev"), By: 1}}, If: append([]store.Cond{store.IfPresent()}, more...),
	}}, gone})
	return nil
}

// Require stages that a record must exist when the change runs, such as the parent of a
// record that is made.
func (t *Tx) Require(of Ref) error {
	if err := own(t, of.Scope); err != nil {
		return err
	}
	key := recordKey(of.Scope, of.Kind, of.ID)
	if t.batch.has(store.Control, key) {
		return nil // this change writes it already
	}
	gone := fault.Newf(fault.ReferenceNotFound, "", "the referenced %s no longer exists", word(of.Kind))
	t.batch.stage(place{store.Control, key}, staged{store.Action{Table: store.Control, Check: &store.Check{
		Key: key, If: []store.Cond{store.IfPresent()},
	}}, gone})
	return nil
}

// RequireUnchanged stages that a record must be unchanged since this change has read it; otherwise the
// change runs again.
func (t *Tx) RequireUnchanged(rec *Record) error {
	if err := own(t, rec.Scope); err != nil {
		return err
	}
	key := recordKey(rec.Scope, rec.Kind, rec.ID)
	if t.batch.has(store.Control, key) {
		return nil // the condition of its write reports it
	}
	t.batch.stage(place{store.Control, key}, staged{action: store.Action{Table: store.Control, Check: &store.Check{
		Key: key, If: []store.Cond{store.IfEqual(store.At("rev"), rec.Rev)},
	}}})
	return nil
}

// touched is the time of the last change in other rows that belong to a record, since the
// record itself was written: the record's next write removes it.
const touched = "touched"

// MarkChanged stages that something has changed that belongs to a record but is stored in other
// rows: the record's Rev and its Changed time are raised. A concurrent change of the record
// itself must look again; concurrent touches need not. A record that does not exist is left
// alone.
func (t *Tx) MarkChanged(of Ref) error {
	if err := own(t, of.Scope); err != nil {
		return err
	}
	key := recordKey(of.Scope, of.Kind, of.ID)
	if t.batch.has(store.Control, key) {
		return nil // this change writes it already
	}
	if _, there, err := t.Get(of.Scope, of.Kind, of.ID); err != nil || !there {
		return err
	}
	t.batch.stage(place{store.Control, key}, staged{action: store.Action{Table: store.Control, Update: &store.Update{
		Key: key, Add: []store.Increment{{Path: store.At("rev"), By: 1}}, If: []store.Cond{store.IfPresent()},
		Set: []store.Assign{{Path: store.At(touched), Value: t.now.UTC().UnixMilli()}},
	}}})
	return nil
}

// RemoveUse stages that by no longer uses of.
func (t *Tx) RemoveUse(of, by Ref) error {
	if err := own(t, of.Scope); err != nil {
		return err
	}
	t.batch.delete(store.Control, useKey(of, by), nil)
	return nil
}

// Users lists who uses a record, as stored before this change.
func (r *Resources) Users(ctx context.Context, of Ref) ([]Ref, error) {
	var out []Ref
	q := store.Query{Partition: of.Scope.Partition(), Prefix: useQueryPrefix(of)}
	err := each(ctx, r.control, q, func(row store.Row) error {
		it := row.Item
		sc := store.Scope{Org: of.Scope.Org, Workspace: it.String("ws")}
		out = append(out, Ref{Scope: sc, Kind: Kind(it.String("kind")), ID: it.String("id"), Name: it.String("name")})
		return nil
	})
	return out, err
}

// maxNamedUsers bounds how many users a rejection lists.
const maxNamedUsers = 10

// RefuseIfUsed is a fault.Conflict that lists the users of a record; nil when
// there are none.
func (t *Tx) RefuseIfUsed(of Ref) error {
	users, err := t.r.Users(t.ctx, of)
	if err != nil {
		return err
	}
	return InUse(of, users)
}

// InUse is the rejection to delete a record that lists its users; nil without any.
func InUse(of Ref, users []Ref) error {
	if len(users) == 0 {
		return nil
	}
	names := make([]string, 0, maxNamedUsers)
	for _, u := range users[:min(len(users), maxNamedUsers)] {
		name := u.Name
		if name == "" {
			name = u.ID
		}
		names = append(names, word(u.Kind)+" "+strconv.Quote(name))
	}
	more := ""
	if len(users) > maxNamedUsers {
		more = fmt.Sprintf(" and %d more", len(users)-maxNamedUsers)
	}
	return fault.Newf(fault.Conflict, "", "this %s is in use by %s%s; change them first", word(of.Kind), strings.Join(names, ", "), more).WithCause(&UsedError{users})
}

// CreateCredential stages a keys-table row that must be new. The row carries
// "org", its organization, which LoadCredential needs.
func (t *Tx) CreateCredential(row store.Row) error {
	if err := own(t, store.Scope{Org: row.Item.String("org")}); err != nil {
		return err
	}
	t.batch.put(store.Keys, row, fault.New(fault.Conflict, "key", "this key value is already in use"), store.IfAbsent())
	return nil
}

// PutCredential stages a keys-table row that replaces what this organization stored there.
// A row of another organization is never overwritten.
func (t *Tx) PutCredential(row store.Row) error {
	org := row.Item.String("org")
	if err := own(t, store.Scope{Org: org}); err != nil {
		return err
	}
	_, ok, err := t.r.store.Table(store.Keys).Get(t.ctx, row.Key, true)
	if err != nil {
		return readError(err)
	}
	cond := store.IfAbsent()
	if ok {
		cond = store.IfEqual(store.At("org"), org)
	}
	t.batch.put(store.Keys, row, fault.New(fault.Conflict, "key", "this key value is already in use"), cond)
	return nil
}

// DeleteCredential stages the removal of a keys-table row.
func (t *Tx) DeleteCredential(key store.Key) { t.batch.delete(store.Keys, key, nil) }

// Schedule stages that something of kind is due for a record at a time. Workers find
// it with EachDue.
func Schedule(t *Tx, kind string, at time.Time, of Ref) error {
	if err := own(t, of.Scope); err != nil {
		return err
	}
	it := store.Item{"org": of.Scope.Org, "kind": string(of.Kind), "id": of.ID, "at": at.UnixMilli()}
	setString(it, "ws", of.Scope.Workspace)
	t.batch.put(store.Control, store.Row{Key: dueKey(kind, at, of), Item: it}, nil)
	return nil
}

// Unschedule stages the removal of what Schedule staged with the same arguments.
func Unschedule(t *Tx, kind string, at time.Time, of Ref) error {
	if err := own(t, of.Scope); err != nil {
		return err
	}
	t.batch.delete(store.Control, dueKey(kind, at, of), nil)
	return nil
}

// Outbox stages a message that is sent after the commit.
func (t *Tx) Outbox(topic string, body []byte) {
	m := t.r.NewMessage(topic, t.scope.Org, body)
	t.outbox = append(t.outbox, m)
	t.batch.put(store.Control, m.Row(), nil, store.IfAbsent())
}

// Do stages any other action. If its condition fails, the change returns onFail, or runs again
// when onFail is nil. It is for rows with a layout that another package defines.
func (t *Tx) Do(a store.Action, onFail error) {
	t.batch.stage(place{a.Table, a.Target()}, staged{action: a, onFail: onFail})
}

// own rejects a scope of another organization: that is a bug, not an input.
func own(t *Tx, sc store.Scope) error {
	if sc.Org != t.scope.Org {
		return fmt.Errorf("resource: a change of organization %q touches %q", t.scope.Org, sc.Org)
	}
	return nil
}

// word is a kind as a word for people.
func word(k Kind) string {
	top, _, _ := strings.Cut(string(k), "@")
	return strings.ReplaceAll(strings.ToLower(top), "_", " ")
}
