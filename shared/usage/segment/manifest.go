package segment

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"

	"gateway/shared/store"
)

// Tier is the kind of merge that produced a segment.
type Tier int64

const (
	TierBatch  Tier = iota // a single batch of a worker
	TierMinute             // merged within its hour
	TierHour               // a whole hour
	TierDay                // a whole day
)

// Manifest is the row that makes a segment visible.
type Manifest struct {
	Org     string
	ID      string // hash of the event ids
	Name    string // name of its objects: the id and a random part
	Tier    Tier
	Hour    int64     // unix hour of its first hour (for a day segment: of the day's first hour)
	Min     int64     // Start of its first record, microseconds since 1970
	Max     int64     // Start of its last record
	Records int64     //
	Size    int64     // size of the file in bytes
	cube    int64     // size of the cube in bytes; 0 if unknown
	Created time.Time // to the millisecond
	blobs   string    // kinds of the objects in the bucket
	bodies  bool      // it has a separate pack of bodies
}

// kind is a kind of segment object; Manifest.blobs contains its first letter.
type kind string

const (
	dataObject   kind = "data"
	cubeObject   kind = "cube"
	bodiesObject kind = "bodies"
)

// maxInline is the maximum size of an object in the store. With its keys this is well
// below an item's limit.
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

// randomBytes is the number of random bytes in a name.
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

// InFile reports whether the segment's records are in a file that other tools see.
func (m *Manifest) InFile() bool { return m.inBucket(dataObject) }

// FileID returns the unique part of the file's name.
func (m *Manifest) FileID() string { return m.Name[len(m.Name)-2*randomBytes:] }

// FileIDEnd is the distance from the start of FileID to the end of a file's name.
const FileIDEnd = 2*randomBytes + len(".parquet")

// FilesPrefix returns the prefix in the bucket of an organization's files, which are
// below it by day.
func FilesPrefix(org string) string {
	return "segments/" + string(dataObject) + "/" + url.PathEscape(org) + "/"
}

func (m *Manifest) objectKey(k kind) store.Key {
	return store.Scope{Org: m.Org}.Partition("SEG", m.Name).Key(string(k))
}

// blobKey returns the object's key in the bucket. The files of an organization's day have
// a common prefix, for use by other tools.
func (m *Manifest) blobKey(k kind) string {
	ext := map[kind]string{dataObject: ".parquet", cubeObject: ".cube", bodiesObject: ".bodies"}[k]
	return "segments/" + string(k) + "/" + url.PathEscape(m.Org) + "/" + time.Unix(m.Hour*3600, 0).UTC().Format("2006/01/02") + "/" + m.Name + ext
}

// List returns the manifests of segments that may contain records between from and to
// (microseconds, both included), oldest hour first.
func (a *Archive) List(ctx context.Context, org string, from, to int64) ([]Manifest, error) {
	const day = 24 * Hour
	return a.list(ctx, org, hourKey((from-from%day)/Hour), hourKey(to/Hour)+"#~", func(m *Manifest) bool { return m.Max >= from && m.Min <= to })
}

// Recent returns the manifests of segments for the hour of from (microseconds) and later
// ones that were created at created or later, without segments of whole days.
func (a *Archive) Recent(ctx context.Context, org string, from int64, created time.Time) ([]Manifest, error) {
	return a.list(ctx, org, hourKey(from/Hour), hourKey(maxHour), func(m *Manifest) bool { return m.Tier < TierDay && !m.Created.Before(created) })
}

// maxHour is greater than every hour in a key.
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

// A segment is invisible to other tools while its records are in the store. With
// Options.Files no segment should stay invisible for long: merges of past hours write
// files. A scan of all manifests finds segments that were merged before the option was
// set.
const (
	scanRows     = 1000           // maximum of manifests and organizations per call
	scanInterval = 24 * time.Hour // from the end of one scan to the next
	scanGrace    = 48 * time.Hour // this long after its hour, no other merge will include a segment
)

// needsFile reports whether a segment's records should be in a file but are not.
func (a *Archive) needsFile(m *Manifest) bool {
	return a.o.Files && m.Tier >= TierHour && !m.InFile()
}

// fileScan scans the manifests of all organizations, a part in each call.
type fileScan struct {
	archive *Archive
	rows    int // approximate number per call
}

// scanKey is the row with the progress of a scan.
func scanKey() store.Key { return dueRows().Key("F", "look") }

// scan continues after the last call and marks the segments without a file.
func (a fileScan) scan(ctx context.Context, now time.Time) error {
	if !a.archive.o.Files {
		return nil
	}
	item, _, err := a.archive.table.Get(ctx, scanKey(), false)
	if err != nil {
		return fmt.Errorf("segment: look: %w", err)
	}
	if now.UnixMilli() < item.Int("rest") {
		return nil
	}
	next, err := a.part(ctx, item.String("org"), item.String("after"), now)
	if err != nil {
		return err
	}
	if err := a.archive.table.Put(ctx, store.Row{Key: scanKey(), Item: next}); err != nil {
		return fmt.Errorf("segment: look: %w", err)
	}
	return nil
}

// part scans organizations starting with org, and the manifests of org after the key
// after.
func (a fileScan) part(ctx context.Context, org, after string, now time.Time) (next store.Item, err error) {
	orgs := store.Query{Partition: retentionRows(), From: retentionRows().Key("O", org).SK(), To: retentionRows().Key("O", "~").SK(), Limit: a.rows}
	for left := a.rows; ; {
		page, err := a.archive.table.Query(ctx, orgs)
		if err != nil {
			return nil, fmt.Errorf("segment: look: %w", err)
		}
		for _, row := range page.Rows {
			at := row.Item.String("org")
			if at != org {
				org, after = at, ""
			}
			if after, left, err = a.ofOrg(ctx, org, after, left, now); err != nil {
				return nil, err
			}
			if left <= 0 {
				return store.Item{"org": org, "after": after}, nil
			}
		}
		if page.Next == "" {
			return store.Item{"rest": now.Add(scanInterval).UnixMilli()}, nil
		}
		orgs.After = page.Next
	}
}

// ofOrg scans the manifests of an organization; behind is the key at which it stopped.
func (a fileScan) ofOrg(ctx context.Context, org, after string, left int, now time.Time) (behind string, rest int, err error) {
	q := store.Query{Partition: manifests(org), From: hourKey(0), To: hourKey(maxHour), After: after, Limit: left, Eventual: true}
	noted := ""
	for left > 0 {
		page, err := a.archive.table.Query(ctx, q)
		if err != nil {
			return "", 0, fmt.Errorf("segment: look: %w", err)
		}
		for _, row := range page.Rows {
			q.After = row.Key.SK()
			m := manifestOf(org, row.Item)
			if m.InFile() || now.Before(time.Unix((m.Hour+1)*hourSeconds, 0).Add(scanGrace)) {
				continue
			}
			sort := "H" // the hour's mark creates one for its day later
			if m.Tier == TierDay {
				sort = "D"
			}
			due := sort + hourKey(m.Hour)
			if due == noted {
				continue
			}
			if err := a.archive.markDue(ctx, sort, org, m.Hour); err != nil {
				return "", 0, err
			}
			noted = due
		}
		left -= len(page.Rows) + 1
		if page.Next == "" {
			return q.After, left, nil
		}
		q.After, q.Limit = page.Next, max(left, 1)
	}
	return q.After, left, nil
}
