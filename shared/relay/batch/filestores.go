package batch

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
	"gateway/shared/seal"
	"gateway/shared/store"
)

// FileStores stores files for workspaces that their providers cannot store. A file is in the bucket
// in sealed chunks and has a row in the usage table; both are deleted after holdDuration.
type FileStores struct {
	Now    func() time.Time
	Table  store.Table
	Bucket blob.Bucket // nil: files cannot be stored
	Sealer seal.Sealer
}

// WorkspaceFiles stores the files of one workspace: for providers that cannot store them, or those that
// the gateway manages itself.
type WorkspaceFiles struct {
	*FileStores
	scope  store.Scope
	prefix string // of the ids
	list   string // partition of the rows
}

var (
	_ chat.JobFiles = WorkspaceFiles{}
	_ FileStore     = WorkspaceFiles{}
)

// Limits of stored files.
const (
	holdDuration = 30 * 24 * time.Hour
	chunkSize    = 1 << 20   // bytes, before they are sealed
	maxFile      = 512 << 20 // bytes of one file
	idPrefix     = "file-gw-"
	folders      = "held/" // in the bucket; infra expires its objects
	sweepPage    = 500
	maxFileID    = 512 // bytes; longer ids do not exist
)

// ForProviders returns the store of files that the workspace's providers cannot store.
func (r *FileStores) ForProviders(sc store.Scope) chat.JobFiles {
	return WorkspaceFiles{r, sc, idPrefix, "HELD"}
}

// BuiltIn returns the store of files that the gateway manages itself.
func (r *FileStores) BuiltIn(sc store.Scope) WorkspaceFiles {
	return WorkspaceFiles{r, sc, FilePrefix, "MANAGED"}
}

// folder returns the prefix of the workspace's files of one day: days sort in order.
func (r WorkspaceFiles) folder() string {
	return folders + hex.EncodeToString([]byte(r.scope.Org)) + "/" + hex.EncodeToString([]byte(r.scope.Workspace)) + "/"
}

func dayOf(t time.Time) string { return t.UTC().Format("20060102") }

// chunk returns the key of one chunk of a file.
func (r WorkspaceFiles) chunk(f *chat.StoredFile, n int) string {
	return r.folder() + dayOf(time.Unix(f.Created, 0)) + "/" + f.ID + "/" + strconv.Itoa(n)
}

func (r WorkspaceFiles) binding(place string) seal.Binding {
	return seal.Binding{Org: r.scope.Org, Table: "held", PK: r.folder(), SK: place}
}

func (r WorkspaceFiles) row(id string) store.Key { return r.scope.Partition(r.list).Key(id) }

// Save implements chat.JobFiles.
func (r WorkspaceFiles) Save(ctx context.Context, name string, src io.Reader, purpose func() (string, error)) (*chat.StoredFile, error) {
	if r.Bucket == nil {
		return nil, fault.New(fault.UnsupportedOperation, "file", "This installation cannot store files")
	}
	r.sweep(ctx)
	f, err := r.save(ctx, r.prefix+ulid.MustNewDefault(r.Now()).String(), name, src, purpose)
	if err != nil {
		r.drop(context.WithoutCancel(ctx), f)
		return nil, err
	}
	return f, nil
}

// SaveAs implements Room. It does not remove the chunks of a failed attempt: another process may
// have continued the batch and stored its file under the same id.
func (r WorkspaceFiles) SaveAs(ctx context.Context, id, name, purpose string, src io.Reader) (*chat.StoredFile, error) {
	f, err := r.save(ctx, id, name, src, func() (string, error) { return purpose, nil })
	if err != nil {
		return nil, err
	}
	return f, nil
}

// save writes a file. On an error it also returns the partially written file.
func (r WorkspaceFiles) save(ctx context.Context, id, name string, src io.Reader, purpose func() (string, error)) (*chat.StoredFile, error) {
	now := r.Now()
	size, err := r.fill(ctx, &chat.StoredFile{ID: id, Created: now.Unix()}, src)
	what := ""
	if err == nil {
		what, err = purpose()
	}
	f := &chat.StoredFile{ID: id, Name: name, Purpose: what, Bytes: size, Created: now.Unix(), Expires: now.Add(holdDuration).Unix()}
	if err == nil {
		err = r.enter(ctx, f)
	}
	return f, err
}

// fill writes the chunks of a file and returns its size.
func (r WorkspaceFiles) fill(ctx context.Context, f *chat.StoredFile, src io.Reader) (size int64, err error) {
	p := make([]byte, chunkSize)
	for n := 0; ; n++ {
		got, err := io.ReadFull(src, p)
		ended := err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return size, err
		}
		if size += int64(got); size > maxFile {
			return size, fault.Newf(fault.BodyTooLarge, "file", "file must have at most %d bytes", int64(maxFile))
		}
		if got > 0 {
			place := r.chunk(f, n)
			sealed, err := r.Sealer.Seal(ctx, r.binding(place), p[:got])
			if err == nil {
				err = r.Bucket.Put(ctx, place, sealed)
			}
			if err != nil {
				return size, fault.Unavailable(err)
			}
		}
		if ended {
			return size, nil
		}
	}
}

// enter writes the row of a file, which makes it visible.
func (r WorkspaceFiles) enter(ctx context.Context, f *chat.StoredFile) error {
	row := store.Row{Key: r.row(f.ID), Expires: time.Unix(f.Expires, 0), Item: store.Item{
		"name": f.Name, "purpose": f.Purpose, "bytes": f.Bytes, "created": f.Created, "until": f.Expires,
	}}
	if err := r.Table.Put(ctx, row); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// drop deletes the chunks of a file.
func (r WorkspaceFiles) drop(ctx context.Context, f *chat.StoredFile) {
	for n := range int(f.Bytes/chunkSize) + 1 {
		if r.Bucket.Delete(ctx, r.chunk(f, n)) != nil {
			return // they expire with their day
		}
	}
}

// sweep deletes some of the workspace's expired chunks. If the bucket expires objects
// automatically there are none.
func (r WorkspaceFiles) sweep(ctx context.Context) {
	keys, err := r.Bucket.List(ctx, r.folder(), "", sweepPage)
	if err != nil {
		return
	}
	last := r.folder() + dayOf(r.Now().Add(-holdDuration-24*time.Hour))
	for _, key := range keys {
		if key >= last {
			return
		}
		_ = r.Bucket.Delete(ctx, key)
	}
}

func fileOf(id string, item store.Item) *chat.StoredFile {
	return &chat.StoredFile{ID: id, Name: item.String("name"), Purpose: item.String("purpose"), Bytes: item.Int("bytes"), Created: item.Int("created"), Expires: item.Int("until")}
}

// File implements chat.JobFiles.
func (r WorkspaceFiles) File(ctx context.Context, id string) (*chat.StoredFile, error) {
	if len(id) > maxFileID || !strings.HasPrefix(id, r.prefix) {
		return nil, nil
	}
	item, ok, err := r.Table.Get(ctx, r.row(id), true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if !ok {
		return nil, nil
	}
	return fileOf(id, item), nil
}

// Remove implements chat.JobFiles.
func (r WorkspaceFiles) Remove(ctx context.Context, id string) (bool, error) {
	f, err := r.File(ctx, id)
	if err != nil || f == nil {
		return false, err
	}
	if err := r.Table.Delete(ctx, r.row(id)); err != nil {
		return false, fault.Unavailable(err)
	}
	r.drop(ctx, f)
	return true, nil
}

// Files implements chat.JobFiles.
func (r WorkspaceFiles) Files(ctx context.Context, purpose, after string, limit int) (page []chat.StoredFile, more bool, err error) {
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
		rows, err := r.Table.Query(ctx, q)
		if err != nil {
			return nil, false, fault.Unavailable(err)
		}
		for _, row := range rows.Rows {
			if f := fileOf(row.Key.SK(), row.Item); purpose == "" || f.Purpose == purpose {
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

// Open implements chat.JobFiles.
func (r WorkspaceFiles) Open(ctx context.Context, f *chat.StoredFile) io.ReadCloser {
	return r.OpenAt(ctx, f, 0)
}

// OpenAt implements Room.
func (r WorkspaceFiles) OpenAt(ctx context.Context, f *chat.StoredFile, offset int64) io.ReadCloser {
	return &reader{ctx: ctx, remaining: r, file: f, next: int(offset / chunkSize), skip: int(offset % chunkSize), left: f.Bytes - offset}
}

// reader opens one chunk after the other.
type reader struct {
	ctx       context.Context
	remaining WorkspaceFiles
	file      *chat.StoredFile
	next      int
	skip      int // bytes of the next chunk before the offset
	chunk     []byte
	left      int64
}

// Read implements io.Reader.
func (h *reader) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, io.EOF
	}
	if len(h.chunk) == 0 {
		place := h.remaining.chunk(h.file, h.next)
		sealed, err := h.remaining.Bucket.Get(h.ctx, place, 2*chunkSize)
		if err == nil {
			h.chunk, err = h.remaining.Sealer.Open(h.ctx, h.remaining.binding(place), sealed)
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
func (h *reader) Close() error { return nil }

const (
	notedFor = 400 * 24 * time.Hour
	maxNote  = 64 << 10 // bytes
)

// noteRow returns the key of a note on a job of the workspace.
func (r WorkspaceFiles) noteRow(id string) store.Key { return r.scope.Partition("JOBNOTE").Key(id) }

// SetData implements chat.JobFiles.
func (r WorkspaceFiles) SetData(ctx context.Context, id string, note []byte) error {
	if id == "" || len(id) > maxFileID || len(note) > maxNote {
		return fault.Invalid("metadata", "metadata must have at most %d bytes", maxNote)
	}
	key := r.noteRow(id)
	sealed, err := r.Sealer.Seal(ctx, r.binding(key.SK()), note)
	if err == nil {
		err = r.Table.Put(ctx, store.Row{Key: key, Item: store.Item{"sealed": sealed}, Expires: r.Now().Add(notedFor)})
	}
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Data implements chat.JobFiles.
func (r WorkspaceFiles) Data(ctx context.Context, ids ...string) (map[string][]byte, error) {
	byKey := make(map[store.Key]string, len(ids))
	keys := make([]store.Key, 0, len(ids))
	for _, id := range ids {
		key := r.noteRow(id)
		if _, twice := byKey[key]; !twice && id != "" && len(id) <= maxFileID {
			byKey[key], keys = id, append(keys, key)
		}
	}
	items, err := r.Table.GetMany(ctx, keys)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	notes := make(map[string][]byte, len(items))
	for key, item := range items {
		note, err := r.Sealer.Open(ctx, r.binding(key.SK()), item.Bytes("sealed"))
		if err != nil {
			return nil, fault.Unavailable(err)
		}
		notes[byKey[key]] = note
	}
	return notes, nil
}
