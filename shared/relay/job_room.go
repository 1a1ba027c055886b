package relay

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/blob"
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/managed"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// jobRooms keep for workspaces what their providers have no place for. A file
// lies in the bucket in sealed chunks, its row in the table of usage; both go
// after heldFor.
type jobRooms struct {
	now    func() time.Time
	table  store.Table
	bucket blob.Bucket // nil: there is no place for files
	seal   seal.Sealer
}

// jobRoom is that of one workspace: for the files of providers that have no place
// for them, or for those that the gateway manages itself.
type jobRoom struct {
	*jobRooms
	scope  store.Scope
	prefix string // of the ids
	list   string // partition of the rows
}

var (
	_ chat.JobRoom = jobRoom{}
	_ managed.Room = jobRoom{}
)

// Bounds of what is kept.
const (
	heldFor     = 30 * 24 * time.Hour
	heldChunk   = 1 << 20   // bytes, before they are sealed
	maxHeldFile = 512 << 20 // bytes of one file
	heldPrefix  = "file-gw-"
	maxNote     = 64 << 10
	heldFolder  = "held/" // in the bucket; infra expires what is below it
	sweepPage   = 500
)

func (r *jobRooms) of(sc store.Scope) chat.JobRoom { return jobRoom{r, sc, heldPrefix, "HELD"} }

// own is the room of files that the gateway manages itself.
func (r *jobRooms) own(sc store.Scope) jobRoom {
	return jobRoom{r, sc, managed.FilePrefix, "MANAGED"}
}

// folder is where the workspace's files of one day lie: days come in order.
func (r jobRoom) folder() string {
	return heldFolder + hex.EncodeToString([]byte(r.scope.Org)) + "/" + hex.EncodeToString([]byte(r.scope.Workspace)) + "/"
}

func dayOf(t time.Time) string { return t.UTC().Format("20060102") }

// chunk is the place of one chunk of a file.
func (r jobRoom) chunk(f *chat.HeldFile, n int) string {
	return r.folder() + dayOf(time.Unix(f.Created, 0)) + "/" + f.ID + "/" + strconv.Itoa(n)
}

func (r jobRoom) binding(place string) seal.Binding {
	return seal.Binding{Org: r.scope.Org, Table: "held", PK: r.folder(), SK: place}
}

func (r jobRoom) row(id string) store.Key { return r.scope.Partition(r.list).Key(id) }

// Save implements chat.JobRoom.
func (r jobRoom) Save(ctx context.Context, name string, src io.Reader, purpose func() (string, error)) (*chat.HeldFile, error) {
	if r.bucket == nil {
		return nil, fault.New(fault.UnsupportedOperation, "file", "This installation has no room for files")
	}
	r.sweep(ctx)
	f, err := r.save(ctx, r.prefix+ulid.MustNewDefault(r.now()).String(), name, src, purpose)
	if err != nil {
		r.drop(context.WithoutCancel(ctx), f)
		return nil, err
	}
	return f, nil
}

// SaveAs implements managed.Room. What a try that fails has written stays: under
// the same id there may be a file by now, of who went on with the batch.
func (r jobRoom) SaveAs(ctx context.Context, id, name, purpose string, src io.Reader) (*chat.HeldFile, error) {
	f, err := r.save(ctx, id, name, src, func() (string, error) { return purpose, nil })
	if err != nil {
		return nil, err
	}
	return f, nil
}

// save writes a file. With an error it tells how far that went.
func (r jobRoom) save(ctx context.Context, id, name string, src io.Reader, purpose func() (string, error)) (*chat.HeldFile, error) {
	now := r.now()
	f := &chat.HeldFile{ID: id, Name: name, Created: now.Unix(), Expires: now.Add(heldFor).Unix()}
	err := r.fill(ctx, f, src)
	if err == nil {
		f.Purpose, err = purpose()
	}
	if err == nil {
		err = r.enter(ctx, f)
	}
	return f, err
}

// fill writes the chunks of a file.
func (r jobRoom) fill(ctx context.Context, f *chat.HeldFile, src io.Reader) error {
	p := make([]byte, heldChunk)
	for n := 0; ; n++ {
		got, err := io.ReadFull(src, p)
		ended := err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		if f.Bytes += int64(got); f.Bytes > maxHeldFile {
			return fault.Newf(fault.BodyTooLarge, "file", "file must have at most %d bytes", int64(maxHeldFile))
		}
		if got > 0 {
			place := r.chunk(f, n)
			sealed, err := r.seal.Seal(ctx, r.binding(place), p[:got])
			if err == nil {
				err = r.bucket.Put(ctx, place, sealed)
			}
			if err != nil {
				return fault.Unavailable(err)
			}
		}
		if ended {
			return nil
		}
	}
}

// enter writes the row of a file, which makes it known.
func (r jobRoom) enter(ctx context.Context, f *chat.HeldFile) error {
	row := store.Row{Key: r.row(f.ID), Expires: time.Unix(f.Expires, 0), Item: store.Item{
		"name": f.Name, "purpose": f.Purpose, "bytes": f.Bytes, "created": f.Created, "until": f.Expires,
	}}
	if err := r.table.Put(ctx, row); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// drop deletes the chunks of a file.
func (r jobRoom) drop(ctx context.Context, f *chat.HeldFile) {
	for n := range int(f.Bytes/heldChunk) + 1 {
		if r.bucket.Delete(ctx, r.chunk(f, n)) != nil {
			return // they go with their day
		}
	}
}

// sweep deletes some of the workspace's chunks whose time has run out; buckets
// that expire by themselves leave nothing to do.
func (r jobRoom) sweep(ctx context.Context) {
	keys, err := r.bucket.List(ctx, r.folder(), "", sweepPage)
	if err != nil {
		return
	}
	last := r.folder() + dayOf(r.now().Add(-heldFor-24*time.Hour))
	for _, key := range keys {
		if key >= last {
			return
		}
		_ = r.bucket.Delete(ctx, key)
	}
}

func heldFile(id string, item store.Item) *chat.HeldFile {
	return &chat.HeldFile{ID: id, Name: item.String("name"), Purpose: item.String("purpose"), Bytes: item.Int("bytes"), Created: item.Int("created"), Expires: item.Int("until")}
}

// File implements chat.JobRoom.
func (r jobRoom) File(ctx context.Context, id string) (*chat.HeldFile, error) {
	if len(id) > maxID || !strings.HasPrefix(id, r.prefix) {
		return nil, nil
	}
	item, ok, err := r.table.Get(ctx, r.row(id), true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if !ok {
		return nil, nil
	}
	return heldFile(id, item), nil
}

// Open implements chat.JobRoom.
func (r jobRoom) Open(ctx context.Context, f *chat.HeldFile) io.ReadCloser {
	return r.OpenAt(ctx, f, 0)
}

// OpenAt implements managed.Room.
func (r jobRoom) OpenAt(ctx context.Context, f *chat.HeldFile, offset int64) io.ReadCloser {
	return &heldReader{ctx: ctx, room: r, file: f, next: int(offset / heldChunk), skip: int(offset % heldChunk), left: f.Bytes - offset}
}

// heldReader opens one chunk after the other.
type heldReader struct {
	ctx   context.Context
	room  jobRoom
	file  *chat.HeldFile
	next  int
	skip  int // bytes of the next chunk that stand before what is read
	chunk []byte
	left  int64
}

// Read implements io.Reader.
func (h *heldReader) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, io.EOF
	}
	if len(h.chunk) == 0 {
		place := h.room.chunk(h.file, h.next)
		sealed, err := h.room.bucket.Get(h.ctx, place, 2*heldChunk)
		if err == nil {
			h.chunk, err = h.room.seal.Open(h.ctx, h.room.binding(place), sealed)
		}
		if err == nil && len(h.chunk) <= h.skip {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, fault.Unavailable(err)
		}
		h.chunk, h.skip = h.chunk[h.skip:], 0
		h.next++
	}
	n := copy(p, h.chunk)
	h.chunk, h.left = h.chunk[n:], h.left-int64(n)
	return n, nil
}

// Close implements io.Closer.
func (h *heldReader) Close() error { return nil }

// Remove implements chat.JobRoom.
func (r jobRoom) Remove(ctx context.Context, id string) (bool, error) {
	f, err := r.File(ctx, id)
	if err != nil || f == nil {
		return false, err
	}
	if err := r.table.Delete(ctx, r.row(id)); err != nil {
		return false, fault.Unavailable(err)
	}
	r.drop(ctx, f)
	return true, nil
}

// Files implements chat.JobRoom.
func (r jobRoom) Files(ctx context.Context, purpose, after string, limit int) (page []chat.HeldFile, more bool, err error) {
	q := store.Query{Partition: r.scope.Partition(r.list), Reverse: true}
	if after != "" {
		f, err := r.File(ctx, after)
		if err != nil {
			return nil, false, err
		}
		if f == nil {
			return nil, false, fault.Invalid("after", "after must be the id of a file of the list")
		}
		q.After = r.row(after).SK()
	}
	for {
		rows, err := r.table.Query(ctx, q)
		if err != nil {
			return nil, false, fault.Unavailable(err)
		}
		for _, row := range rows.Rows {
			if f := heldFile(row.Key.SK(), row.Item); purpose == "" || f.Purpose == purpose {
				if len(page) == limit {
					return page, true, nil
				}
				page = append(page, *f)
			}
		}
		if q.After = rows.Next; q.After == "" {
			return page, false, nil
		}
	}
}

func (r jobRoom) noteRow(id string) store.Key { return r.scope.Partition("JOBNOTE").Key(id) }

// Note implements chat.JobRoom.
func (r jobRoom) Note(ctx context.Context, id string, note []byte) error {
	if id == "" || len(id) > maxID || len(note) > maxNote {
		return fault.Invalid("metadata", "metadata must have at most %d bytes", maxNote)
	}
	key := r.noteRow(id)
	sealed, err := r.seal.Seal(ctx, r.binding(key.SK()), note)
	if err == nil {
		err = r.table.Put(ctx, store.Row{Key: key, Item: store.Item{"sealed": sealed}, Expires: r.now().Add(ownedFor)})
	}
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Noted implements chat.JobRoom.
func (r jobRoom) Noted(ctx context.Context, ids ...string) (map[string][]byte, error) {
	byKey := make(map[store.Key]string, len(ids))
	keys := make([]store.Key, 0, len(ids))
	for _, id := range ids {
		key := r.noteRow(id)
		if _, twice := byKey[key]; !twice && id != "" && len(id) <= maxID {
			byKey[key], keys = id, append(keys, key)
		}
	}
	items, err := r.table.GetMany(ctx, keys)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	notes := make(map[string][]byte, len(items))
	for key, item := range items {
		note, err := r.seal.Open(ctx, r.binding(key.SK()), item.Bytes("sealed"))
		if err != nil {
			return nil, fault.Unavailable(err)
		}
		notes[byKey[key]] = note
	}
	return notes, nil
}
