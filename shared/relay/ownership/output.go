package ownership

import (
	"context"

	"gateway/shared/store"
)

// outputKey separates stored output from reasoning, which has rows named by call ids.
const outputKey = "output:"

// PutOutput stores the output items of a translated response, a JSON array, for 24 hours. id is
// that of the response. Output above 256 KiB is not stored: clients must send its items
// completely.
func (m *Memory) PutOutput(ctx context.Context, sc store.Scope, id string, items []byte) error {
	if len(items) > maxSignedRow {
		return nil
	}
	k := memoryKey{sc, outputKey + id}
	sealed, err := m.seal.Seal(ctx, k.binding(), items)
	if err != nil {
		return err
	}
	return m.table.Put(ctx, store.Row{Key: signedKey(sc, k.call), Item: store.Item{"sealed": sealed}, Expires: m.now().Add(rememberFor)})
}

// Output returns the output items that PutOutput stored; nil if there are none. The next turn of a
// tool loop follows within milliseconds, so the read is consistent.
func (m *Memory) Output(ctx context.Context, sc store.Scope, id string) ([]byte, error) {
	k := memoryKey{sc, outputKey + id}
	item, ok, err := m.table.Get(ctx, signedKey(sc, k.call), true)
	if err != nil || !ok {
		return nil, err
	}
	return m.seal.Open(ctx, k.binding(), item.Bytes("sealed"))
}
