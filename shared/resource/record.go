package resource

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"gateway/shared/fault"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Kind names a kind of resource in keys: upper case letters, such as CONFIG.
type Kind string

// Of is the kind of the resources below one parent, which have their own ids, list and
// count. id is the parent's id; it has no '#'.
func (k Kind) Of(id string) Kind { return k + Kind("@"+id) }

// StatusArchived is the only status that this package interprets. An archived record retains
// its row and versions but leaves the list and the count of live records.
const StatusArchived = "archived"

// Record is a stored resource. A Record that was read carries what Update and
// Delete need to know about its stored rows; change its fields and pass it on.
type Record struct {
	Scope store.Scope
	Kind  Kind
	ID    string // a UUID unless the creator chose another

	Slug   string // unique in scope and kind; empty: none
	Name   string
	Status string

	Created, Updated     time.Time // UTC, in milliseconds
	CreatedBy, UpdatedBy string

	Version   int64  // of the content, from 1; grows with NewVersion
	VersionID string // UUID of that version
	Latest    int64  // number of the newest version; higher than Version if that one is not published yet
	// Labels are versions by the id of a label; each names one.
	Labels map[string]int64
	Rev    int64 // counts all writes; the basis of optimistic concurrency

	Tags   map[string]string
	Fields map[string]string // small values that lists filter by; copied to the list row

	Body   []byte // JSON of the family's stored form, without secrets
	Sealed []byte // secrets, see SetSecret; opaque here

	// Looked states that the change has looked up the record's id and slug and found none. If
	// another change has created the record first, this one then runs again and sees it;
	// otherwise it is rejected. Looked is not stored.
	Looked bool

	touched    time.Time
	row        string // ULID of the list row
	storedSlug string // slug with a row that belongs to the stored record
	archived   bool   // the stored list row is in the list of archived records
}

// Dependent is a kind of resources that end with their workspace.
type Dependent struct {
	Kind Kind
	// Along means that they do not keep the workspace from being deleted.
	Along bool
	// Release removes the rows by which others find or keep a record; nil: there are none.
	Release func(*Tx, *Record) error
}

// Ref names a record.
type Ref struct {
	Scope store.Scope
	Kind  Kind
	ID    string
	Name  string // for people; may be empty
}

// Ref gives the record's name.
func (r *Record) Ref() Ref { return Ref{Scope: r.Scope, Kind: r.Kind, ID: r.ID, Name: r.Name} }

// Archived reports whether the record's status is StatusArchived.
func (r *Record) Archived() bool { return r.Status == StatusArchived }

// Changed is when the record was last written, or something that belongs to it but is
// stored in other rows.
func (r *Record) Changed() time.Time {
	if r.touched.After(r.Updated) {
		return r.touched
	}
	return r.Updated
}

// Binding is the place to which the record's sealed bytes belong. The caller chooses
// version, which must be stored with the sealed bytes.
func (r *Record) Binding(version int64) seal.Binding {
	k := recordKey(r.Scope, r.Kind, r.ID)
	return seal.Binding{Org: r.Scope.Org, Table: string(store.Control), PK: k.PK(), SK: k.SK(), Version: version}
}

// item is the record's row. The caller must set Rev first.
func (r *Record) item() store.Item {
	it := store.Item{
		"rev":     r.Rev,
		"created": r.Created.UnixMilli(),
		"updated": r.Updated.UnixMilli(),
		"version": r.Version,
		"row":     r.row,
	}
	setString(it, "slug", r.Slug)
	setString(it, "held", r.storedSlug)
	setString(it, "name", r.Name)
	setString(it, "status", r.Status)
	setString(it, "created_by", r.CreatedBy)
	setString(it, "updated_by", r.UpdatedBy)
	setString(it, "version_id", r.VersionID)
	setMap(it, "tags", r.Tags)
	setMap(it, "fields", r.Fields)
	if r.Latest > r.Version {
		it["latest"] = r.Latest
	}
	if len(r.Labels) > 0 {
		labels := make(store.Map, len(r.Labels))
		for label, n := range r.Labels {
			labels[label] = n
		}
		it["labels"] = labels
	}
	if len(r.Body) > 0 {
		it["body"] = r.Body
	}
	if len(r.Sealed) > 0 {
		it["sealed"] = r.Sealed
	}
	return it
}

func decodeRecord(sc store.Scope, k Kind, id string, it store.Item) Record {
	r := Record{
		Scope: sc, Kind: k, ID: id,
		Slug: it.String("slug"), Name: it.String("name"), Status: it.String("status"),
		Created: fromMilli(it.Int("created")), Updated: fromMilli(it.Int("updated")),
		CreatedBy: it.String("created_by"), UpdatedBy: it.String("updated_by"),
		Version: it.Int("version"), VersionID: it.String("version_id"), Rev: it.Int("rev"),
		Tags: stringMap(it.Map("tags")), Fields: stringMap(it.Map("fields")),
		Body: it.Bytes("body"), Sealed: it.Bytes("sealed"),
		row: it.String("row"), storedSlug: it.String("held"), touched: fromMilli(it.Int(touched)),
	}
	r.archived = r.Archived()
	r.Latest = max(it.Int("latest"), r.Version)
	if labels := it.Map("labels"); len(labels) > 0 {
		r.Labels = make(map[string]int64, len(labels))
		for label := range labels {
			r.Labels[label], _ = labels[label].(int64)
		}
	}
	return r
}

// check rejects records that cannot be stored.
func (r *Record) check() error {
	if !validID(r.ID) {
		return fault.Invalid("id", "must have 1 to %d bytes, without '#' and control characters", maxID)
	}
	if r.Slug != "" && !validID(r.Slug) {
		return fault.Invalid("slug", "must have 1 to %d bytes, without '#' and control characters", maxID)
	}
	if _, ok := r.Tags[""]; ok {
		return fault.Invalid("tags", "a tag needs a name")
	}
	return nil
}

// clone copies a record with its maps, so that these can be changed.
func (r *Record) clone() Record {
	c := *r
	c.Tags, c.Fields, c.Labels = maps.Clone(r.Tags), maps.Clone(r.Fields), maps.Clone(r.Labels)
	return c
}

func setString(it store.Item, attr, v string) {
	if v != "" {
		it[attr] = v
	}
}

func setMap(it store.Item, attr string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	out := make(store.Map, len(m))
	for k, v := range m {
		out[k] = v
	}
	it[attr] = out
}

func stringMap(m store.Map) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// fromMilli is the time of Unix milliseconds; 0 is the zero time.
func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Decode reads the stored form of a record.
func Decode[T any](rec Record) (*T, error) {
	form := new(T)
	if err := json.Unmarshal(rec.Body, form); err != nil {
		return nil, fmt.Errorf("resource: stored %s %s: %w", rec.Kind, rec.ID, err)
	}
	return form, nil
}
