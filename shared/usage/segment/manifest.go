package segment

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"gateway/shared/blob"
	"gateway/shared/store"
)

// Tier tells how a segment came about.
type Tier int64

const (
	TierBatch  Tier = iota // one batch of a worker
	TierMinute             // merged within its hour
	TierHour               // a whole hour
	TierDay                // a whole day
)

// Manifest is the row that makes a segment visible.
type Manifest struct {
	Org     string
	ID      string // hash of the event ids
	Name    string // of its objects: the id and a random part
	Tier    Tier
	Hour    int64     // unix hour of its first hour (day segments: of the day's first)
	Min     int64     // Start of its first record, microseconds since 1970
	Max     int64     // Start of its last record
	Records int64     //
	Size    int64     // bytes of the file
	cube    int64     // bytes of the cube; 0: not noted
	Created time.Time // to the millisecond
	blobs   string    // kinds of objects that are in the bucket
	bodies  bool      // has a pack of bodies of its own
}

// kind is one of a segment's objects; its first letter stands in Manifest.blobs.
type kind string

const (
	dataObject   kind = "data"
	cubeObject   kind = "cube"
	bodiesObject kind = "bodies"
)

// maxInline is the size up to which an object stands in the store: with its
// keys well below what an item may have.
const maxInline = 300 << 10

func manifests(org string) store.Partition { return store.Scope{Org: org}.Partition("USAGE") }

func hourKey(hour int64) string { return fmt.Sprintf("M#%08d", hour) }

func (m *Manifest) key() store.Key {
	return manifests(m.Org).Key(hourKey(m.Hour), fmt.Sprint(int64(m.Tier)), m.ID)
}

func (m *Manifest) item() store.Item {
	return store.Item{"id": m.ID, "name": m.Name, "tier": int64(m.Tier), "hour": m.Hour, "min": m.Min, "max": m.Max, "records": m.Records,
		"size": m.Size, "cube": m.cube, "created": m.Created.UnixMilli(), "blobs": m.blobs, "bodies": m.bodies}
}

func manifestOf(org string, it store.Item) Manifest {
	bodies, _ := it["bodies"].(bool)
	return Manifest{Org: org, ID: it.String("id"), Name: it.String("name"), Tier: Tier(it.Int("tier")), Hour: it.Int("hour"), Min: it.Int("min"),
		Max: it.Int("max"), Records: it.Int("records"), Size: it.Int("size"), cube: it.Int("cube"), Created: time.UnixMilli(it.Int("created")), blobs: it.String("blobs"), bodies: bodies}
}

// randomBytes are those of a name.
const randomBytes = 6

// rename gives the segment's objects a name that no other write has used.
func (m *Manifest) rename() error {
	var b [randomBytes]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Errorf("segment: %w", err)
	}
	m.Name = m.ID + "." + hex.EncodeToString(b[:])
	return nil
}

func (m *Manifest) inBucket(k kind) bool { return strings.Contains(m.blobs, string(k[0])) }

// InFile tells whether the segment's records are in a file that other tools see.
func (m *Manifest) InFile() bool { return m.inBucket(dataObject) }

// FileID is the part of the name of the segment's file that no other one has.
func (m *Manifest) FileID() string { return m.Name[len(m.Name)-2*randomBytes:] }

// FileIDEnd is how far before the end of a file's name its FileID begins.
const FileIDEnd = 2*randomBytes + len(".parquet")

// FilesPrefix is below what prefix of the bucket the files of an organisation stand, by
// day.
func FilesPrefix(org string) string {
	return "segments/" + string(dataObject) + "/" + url.PathEscape(org) + "/"
}

func (m *Manifest) objectKey(k kind) store.Key {
	return store.Scope{Org: m.Org}.Partition("SEG", m.Name).Key(string(k))
}

// blobKey is the object's place in the bucket; the files of an organisation's
// day share a prefix, which is what other tools want to point at.
func (m *Manifest) blobKey(k kind) string {
	ext := map[kind]string{dataObject: ".parquet", cubeObject: ".cube", bodiesObject: ".bodies"}[k]
	return "segments/" + string(k) + "/" + url.PathEscape(m.Org) + "/" + time.Unix(m.Hour*3600, 0).UTC().Format("2006/01/02") + "/" + m.Name + ext
}

// List gives the manifests of segments that may hold records from from to to
// (microseconds, both included), oldest hour first.
func (a *Archive) List(ctx context.Context, org string, from, to int64) ([]Manifest, error) {
	const day = 24 * Hour
	return a.list(ctx, org, hourKey((from-from%day)/Hour), hourKey(to/Hour)+"#~", func(m *Manifest) bool { return m.Max >= from && m.Min <= to })
}

// Recent gives the manifests of segments of hours from the one of from on (microseconds)
// that came to be at created or later. Those of whole days are not among them.
func (a *Archive) Recent(ctx context.Context, org string, from int64, created time.Time) ([]Manifest, error) {
	return a.list(ctx, org, hourKey(from/Hour), hourKey(maxHour), func(m *Manifest) bool { return m.Tier < TierDay && !m.Created.Before(created) })
}

// maxHour is behind every hour that a key can have.
const maxHour = 99_999_999

func (a *Archive) list(ctx context.Context, org, fromKey, toKey string, want func(*Manifest) bool) ([]Manifest, error) {
	q := store.Query{Partition: manifests(org), From: fromKey, To: toKey}
	var out []Manifest
	for {
		page, err := a.table.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("segment: list: %w", err)
		}
		for _, row := range page.Rows {
			if m := manifestOf(org, row.Item); want(&m) {
				out = append(out, m)
			}
		}
		if page.Next == "" {
			return out, nil
		}
		q.After = page.Next
	}
}

// ErrGone is returned for an object that is not there: its segment was merged
// while a reader held its manifest. List again.
var ErrGone = errors.New("segment: the object is gone")

// object reads one object of a segment whole.
func (a *Archive) object(ctx context.Context, m *Manifest, k kind) ([]byte, error) {
	if m.inBucket(k) {
		b, err := a.bucket.Get(ctx, m.blobKey(k), 0)
		if errors.Is(err, blob.ErrNotFound) {
			err = ErrGone
		}
		if err != nil {
			return nil, fmt.Errorf("segment: %s of %s: %w", k, m.Name, err)
		}
		return b, nil
	}
	item, ok, err := a.table.Get(ctx, m.objectKey(k), true)
	if err == nil && !ok {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("segment: %s of %s: %w", k, m.Name, err)
	}
	return item.Bytes("b"), nil
}

// put writes the objects, then the manifest's fields about them.
func (a *Archive) put(ctx context.Context, m *Manifest, objects map[kind][]byte) error {
	var rows []store.Row
	m.blobs = ""
	for _, k := range [...]kind{dataObject, cubeObject, bodiesObject} {
		b, ok := objects[k]
		switch {
		case !ok:
		case len(b) <= a.o.Inline && !(k == dataObject && a.o.Files && m.Tier >= TierHour):
			rows = append(rows, store.Row{Key: m.objectKey(k), Item: store.Item{"b": b}})
		default:
			if err := a.bucket.Put(ctx, m.blobKey(k), b); err != nil {
				return fmt.Errorf("segment: %s of %s: %w", k, m.Name, err)
			}
			m.blobs += string(k[0])
		}
	}
	_, m.bodies = objects[bodiesObject]
	m.Size, m.cube = int64(len(objects[dataObject])), int64(len(objects[cubeObject]))
	if len(rows) == 0 {
		return nil
	}
	if err := a.table.PutMany(ctx, rows); err != nil {
		return fmt.Errorf("segment: objects of %s: %w", m.Name, err)
	}
	return nil
}

// drop deletes a segment's objects. A pack of bodies in the bucket stays when
// keepPack is set: later segments refer to it.
func (a *Archive) drop(ctx context.Context, m *Manifest, keepPack bool) error {
	for _, k := range [...]kind{dataObject, cubeObject, bodiesObject} {
		var err error
		switch {
		case k == bodiesObject && (!m.bodies || keepPack && m.inBucket(k)):
		case m.inBucket(k):
			err = a.bucket.Delete(ctx, m.blobKey(k))
		default:
			err = a.table.Delete(ctx, m.objectKey(k))
		}
		if err != nil {
			return fmt.Errorf("segment: delete %s of %s: %w", k, m.Name, err)
		}
	}
	return nil
}

// readRange reads a part of an object in the bucket.
func (a *Archive) readRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	r, _, err := a.bucket.Open(ctx, key, offset, length)
	if errors.Is(err, blob.ErrNotFound) {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	defer r.Close()
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	return b, nil
}
