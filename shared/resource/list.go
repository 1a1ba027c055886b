package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/seal"
	"gateway/shared/store"
)

// Row is what a list knows about a record: enough to filter, count and order.
type Row struct {
	ID, Slug, Name, Status string
	Created                time.Time
	Order                  string // of creation: later ones are greater
	Tags, Fields           map[string]string
	Rev                    int64 // the record's Rev when it was last written; 0 in rows of older versions
}

// Row is what the list knows about the record.
func (r *Record) Row() Row {
	return Row{ID: r.ID, Slug: r.Slug, Name: r.Name, Status: r.Status, Created: r.Created, Order: r.row, Tags: r.Tags, Fields: r.Fields, Rev: r.Rev}
}

// listItem is the list row of a record. Its attribute names are short because a list of
// 10,000 records reads them all.
func (r *Record) listItem() store.Item {
	it := store.Item{"i": r.ID, "r": r.Rev}
	setString(it, "s", r.Slug)
	setString(it, "n", r.Name)
	setString(it, "t", r.Status)
	setMap(it, "g", r.Tags)
	setMap(it, "f", r.Fields)
	return it
}

func decodeRow(sk string, it store.Item) Row {
	order := sk[strings.LastIndexByte(sk, '#')+1:]
	return Row{
		ID: it.String("i"), Slug: it.String("s"), Name: it.String("n"), Status: it.String("t"),
		Created: timeOf(order), Order: order,
		Tags: stringMap(it.Map("g")), Fields: stringMap(it.Map("f")), Rev: it.Int("r"),
	}
}

// List gives the rows of all live records, newest first. The slice is shared
// with other callers: do not change it.
func (r *Resources) List(ctx context.Context, sc store.Scope, k Kind) ([]Row, error) {
	return r.list(ctx, sc, k, false)
}

// ListArchived gives the rows of all archived records, newest first.
func (r *Resources) ListArchived(ctx context.Context, sc store.Scope, k Kind) ([]Row, error) {
	return r.list(ctx, sc, k, true)
}

// listReaders is how many lists are read at a time.
const listReaders = 16

// ListMany is List for many scopes of one organization, in their order; the generation is read
// once for all of them. archived adds archived records.
func (r *Resources) ListMany(ctx context.Context, scopes []store.Scope, k Kind, archived bool) ([][]Row, error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	now, err := r.listStamp(ctx, scopes[0].Org)
	if err != nil {
		return nil, err
	}
	lists, errs := make([][]Row, len(scopes)), make([]error, len(scopes))
	if len(scopes) == 1 {
		lists[0], err = r.listUnder(ctx, now, scopes[0], k, archived)
		return lists, err
	}
	var wg sync.WaitGroup
	for first := range min(listReaders, len(scopes)) {
		wg.Go(func() {
			for n := first; n < len(scopes); n += listReaders {
				lists[n], errs[n] = r.listUnder(ctx, now, scopes[n], k, archived)
			}
		})
	}
	wg.Wait()
	return lists, errors.Join(errs...)
}

func (r *Resources) list(ctx context.Context, sc store.Scope, k Kind, archived bool) ([]Row, error) {
	now, err := r.listStamp(ctx, sc.Org)
	if err != nil {
		return nil, err
	}
	return r.listUnder(ctx, now, sc, k, archived)
}

// listUnder reads a list, or takes the cached one if it is still valid.
func (r *Resources) listUnder(ctx context.Context, now stamp, sc store.Scope, k Kind, archived bool) ([]Row, error) {
	key := listID{sc, k, archived}
	if rows, ok := r.lists.get(key, now); ok {
		return rows, nil
	}
	began, cacheable := r.lists.reading(key)
	rows, err := r.listNow(ctx, sc, k, archived)
	if err != nil {
		return nil, err
	}
	if cacheable {
		r.lists.put(key, began, now, rows)
	}
	return rows, nil
}

// listNow reads a list from the store.
func (r *Resources) listNow(ctx context.Context, sc store.Scope, k Kind, archived bool) ([]Row, error) {
	rows := make([]Row, 0, 64)
	q := store.Query{Partition: sc.Partition(), Prefix: listTop(archived) + "#" + string(k) + "#", Reverse: true}
	err := each(ctx, r.control, q, func(row store.Row) error {
		rows = append(rows, decodeRow(row.Key.SK(), row.Item))
		return nil
	})
	return rows, err
}

// List gives the rows of all live records as the store has them at this moment: with
// everything that was committed, but without what this change stages. It is for changes
// that depend on the number of records, and it reads them all.
func (t *Tx) List(sc store.Scope, k Kind) ([]Row, error) {
	if err := own(t, sc); err != nil {
		return nil, err
	}
	return t.r.listNow(t.ctx, sc, k, false)
}

// listStamp is the stamp that cached lists of the organization are compared with. With an
// embedded store this process is the only writer, and it knows its own changes.
func (r *Resources) listStamp(ctx context.Context, org string) (stamp, error) {
	if r.embedded {
		return stamp{}, nil
	}
	before := r.lists.own(org)
	gen, err := r.Generation(ctx, org)
	if err != nil {
		return stamp{}, err
	}
	return stamp{gen: gen, own: before.done, steady: before.writers == 0 && r.lists.own(org) == before}, nil
}

// DryRun collects what changes would do. See WithDryRun.
type DryRun struct {
	Deleted []Ref // deleted or archived
	Updated []Ref
}

type rehearsalKey struct{}

// WithDryRun returns a context in which changes are staged and never committed: what they
// would do is added to h, and the closure of each runs once. It is not safe for concurrent
// changes.
func WithDryRun(ctx context.Context, h *DryRun) context.Context {
	return context.WithValue(ctx, rehearsalKey{}, h)
}

// IsDryRun reports whether changes with the context are not committed.
func IsDryRun(ctx context.Context) bool { return rehearsalOf(ctx) != nil }

func rehearsalOf(ctx context.Context) *DryRun {
	h, _ := ctx.Value(rehearsalKey{}).(*DryRun)
	return h
}

// rehearse runs the closure of a change and collects what it staged.
func (r *Resources) rehearse(ctx context.Context, sc store.Scope, f func(*Tx) error, h *DryRun) error {
	t := r.begin(ctx, sc)
	if err := f(t); err != nil {
		return err
	}
	h.Deleted = append(h.Deleted, t.deleted...)
	for _, rec := range t.Changed() {
		switch {
		case rec.Deleted:
		case rec.Archived():
			h.Deleted = append(h.Deleted, rec.Ref())
		default:
			h.Updated = append(h.Updated, rec.Ref())
		}
	}
	return nil
}

// Type returns the name of the referenced record's kind, such as mcp_server.
func (r Ref) Type() string { return strings.ReplaceAll(word(r.Kind), " ", "_") }

// UsedError is the cause of the fault of InUse.
type UsedError struct{ Users []Ref }

func (e *UsedError) Error() string { return "resource: in use" }

// sealedSecret is one secret of a record. Each is sealed separately, so that writing one
// does not require opening the others: a process that only writes needs no permission to
// decrypt.
type sealedSecret struct {
	Version int64  `json:"v"`
	Data    []byte `json:"d"`
}

// secretBinding ties a secret to its record and to its name.
func (r *Record) secretBinding(name string, version int64) seal.Binding {
	b := r.Binding(version)
	b.SK += "#secret#" + name
	return b
}

func (r *Record) secrets() (map[string]sealedSecret, error) {
	m := make(map[string]sealedSecret)
	if len(r.Sealed) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(r.Sealed, &m); err != nil {
		return nil, fmt.Errorf("resource: secrets of %s %s: %w", r.Kind, r.ID, err)
	}
	return m, nil
}

func (r *Record) setSecrets(m map[string]sealedSecret) error {
	if len(m) == 0 {
		r.Sealed = nil
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("resource: encode secrets: %w", err)
	}
	r.Sealed = b
	return nil
}

// SetSecret seals plain under name into the record, and replaces an earlier value. The
// record must have its ID. A nil plain removes the secret.
func (r *Record) SetSecret(ctx context.Context, s seal.Sealer, name string, plain []byte) error {
	m, err := r.secrets()
	if err != nil {
		return err
	}
	if plain == nil {
		delete(m, name)
		return r.setSecrets(m)
	}
	if r.ID == "" {
		return fmt.Errorf("resource: a secret needs the record's id first")
	}
	version := r.Rev + 1
	data, err := s.Seal(ctx, r.secretBinding(name, version), plain)
	if err != nil {
		return fmt.Errorf("resource: seal %s of %s %s: %w", name, r.Kind, r.ID, err)
	}
	m[name] = sealedSecret{Version: version, Data: data}
	return r.setSecrets(m)
}

// HasSecret reports whether a secret of that name is sealed in the record.
func (r *Record) HasSecret(name string) bool {
	m, err := r.secrets()
	_, ok := m[name]
	return err == nil && ok
}

// SecretNames returns the names of the secrets that are sealed in the record, sorted.
func (r *Record) SecretNames() []string {
	m, err := r.secrets()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// OpenSecrets opens all secrets of the record, by name. For the data plane only.
func (r *Record) OpenSecrets(ctx context.Context, s seal.Sealer) (map[string][]byte, error) {
	m, err := r.secrets()
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(m))
	for name, v := range m {
		plain, err := s.Open(ctx, r.secretBinding(name, v.Version), v.Data)
		if err != nil {
			return nil, fmt.Errorf("resource: open %s of %s %s: %w", name, r.Kind, r.ID, err)
		}
		out[name] = plain
	}
	return out, nil
}
