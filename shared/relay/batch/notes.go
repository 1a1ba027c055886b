package batch

import (
	"context"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

const (
	notedFor = 400 * 24 * time.Hour
	maxNote  = 64 << 10 // bytes
)

// noteRow returns the key of a note on a job of the workspace.
func (r HeldFiles) noteRow(id string) store.Key { return r.scope.Partition("JOBNOTE").Key(id) }

// Note implements chat.JobFiles.
func (r HeldFiles) Note(ctx context.Context, id string, note []byte) error {
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

// Noted implements chat.JobFiles.
func (r HeldFiles) Noted(ctx context.Context, ids ...string) (map[string][]byte, error) {
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
