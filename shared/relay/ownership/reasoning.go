package ownership

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"gateway/shared/chat"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Memory stores the signed reasoning that precedes tool calls, for clients that keep to the
// strict OpenAI schema and so cannot return it. Providers reject a conversation without it. It
// is stored in the process and, sealed, in the store, because the next turn may reach another
// process.
type Memory struct {
	now   func() time.Time
	table store.Table
	seal  seal.Sealer

	mu   sync.Mutex
	mine map[memoryKey]remembered
}

type memoryKey struct {
	scope store.Scope
	call  string
}

type remembered struct {
	parts []chat.Part
	until time.Time
}

const (
	rememberFor  = 24 * time.Hour
	maxInMemory  = 4096
	maxSignedRow = 256 << 10
)

// New returns a Memory with its rows in a table.
func New(now func() time.Time, t store.Table, s seal.Sealer) *Memory {
	return &Memory{now: now, table: t, seal: s, mine: make(map[memoryKey]remembered)}
}

func signedKey(sc store.Scope, call string) store.Key {
	return sc.Partition("SIGNED").Key(call)
}

func (k memoryKey) binding() seal.Binding {
	row := signedKey(k.scope, k.call)
	return seal.Binding{Org: k.scope.Org, Table: string(store.Usage), PK: row.PK(), SK: row.SK()}
}

// Put stores the reasoning that precedes one tool call.
func (m *Memory) Put(ctx context.Context, sc store.Scope, s chat.Signed) error {
	k := memoryKey{sc, s.ToolCallID}
	until := m.now().Add(rememberFor)
	m.mu.Lock()
	if len(m.mine) >= maxInMemory {
		clear(m.mine)
	}
	m.mine[k] = remembered{s.Parts, until}
	m.mu.Unlock()
	plain, err := json.Marshal(s.Parts)
	if err != nil || len(plain) > maxSignedRow {
		return err
	}
	sealed, err := m.seal.Seal(ctx, k.binding(), plain)
	if err != nil {
		return err
	}
	return m.table.Put(ctx, store.Row{Key: signedKey(sc, s.ToolCallID), Item: store.Item{"sealed": sealed}, Expires: until})
}

// Get returns the reasoning that precedes one tool call; nil if there is none.
func (m *Memory) Get(ctx context.Context, sc store.Scope, call string) ([]chat.Part, error) {
	k := memoryKey{sc, call}
	m.mu.Lock()
	r, ok := m.mine[k]
	m.mu.Unlock()
	if ok && m.now().Before(r.until) {
		return r.parts, nil
	}
	item, ok, err := m.table.Get(ctx, signedKey(sc, call), false)
	if err != nil || !ok {
		return nil, err
	}
	plain, err := m.seal.Open(ctx, k.binding(), item.Bytes("sealed"))
	if err != nil {
		return nil, err
	}
	var parts []chat.Part
	return parts, json.Unmarshal(plain, &parts)
}
