package ownership

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
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

	// MaxOutput is the maximum size in bytes of output items that are stored.
	MaxOutput = maxSignedRow
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

// outputKey separates stored output from reasoning, which has rows named by call ids.
const outputKey = "output:"

// PutOutput stores the output items of a translated response, a JSON array, for 24 hours. id is
// that of the response. Output above 256 KiB is not stored: clients must send its items
// completely.
func (m *Memory) PutOutput(ctx context.Context, sc store.Scope, id string, items []byte) error {
	if len(items) > MaxOutput {
		return nil
	}
	k := memoryKey{sc, outputKey + id}
	sealed, err := m.seal.Seal(ctx, k.binding(), items)
	if err != nil {
		return err
	}
	return m.table.Put(ctx, store.Row{Key: signedKey(sc, k.call), Item: store.Item{"sealed": sealed}, Expires: m.now().Add(rememberFor)})
}

// inputKey separates the input of translated requests.
const inputKey = "input:"

// maxTurns limits the responses of one conversation that is stored.
const maxTurns = 512

// turnsAtOnce limits the responses that are read together, each with its input: 8 MiB.
const turnsAtOnce = 16

// exchanged is the row of a request: its input, and the ids of the responses before, oldest first.
type exchanged struct {
	Before []string        `json:"before"`
	Input  json.RawMessage `json:"input"`
}

// StoresInput reports whether PutInput stores an input.
func StoresInput(before []string, items []byte) bool {
	return items != nil && len(items) <= maxSignedRow && len(before) <= maxTurns
}

// PutInput stores the input of a translated response, for requests that continue it; see
// PutOutput for its limits. before are the ids of the responses before.
func (m *Memory) PutInput(ctx context.Context, sc store.Scope, id string, before []string, items []byte) error {
	if !StoresInput(before, items) {
		return nil
	}
	plain, err := json.Marshal(exchanged{before, items})
	if err != nil {
		return err
	}
	k := memoryKey{sc, inputKey + id}
	sealed, err := m.seal.Seal(ctx, k.binding(), plain)
	if err != nil {
		return err
	}
	return m.table.Put(ctx, store.Row{Key: signedKey(sc, k.call), Item: store.Item{"sealed": sealed}, Expires: m.now().Add(rememberFor)})
}

// Conversation returns the items up to a translated response and with it, and the ids of its
// responses, oldest first. Both are nil if a part of it is not stored. Of a conversation of more
// than most bytes only so much is read, and returned, that it is seen to be too long.
func (m *Memory) Conversation(ctx context.Context, sc store.Scope, id string, most int) (items []byte, responses []string, err error) {
	row, ok, err := m.table.Get(ctx, signedKey(sc, inputKey+id), true)
	if err != nil || !ok {
		return nil, nil, err
	}
	last, err := m.exchanged(ctx, memoryKey{sc, inputKey + id}, row)
	if err != nil {
		return nil, nil, err
	}
	responses = append(last.Before, id)
	all := []byte{'['}
	add := func(list []byte) {
		if list = bytes.TrimSpace(list); len(list) > 2 {
			if len(all) > 1 {
				all = append(all, ',')
			}
			all = append(all, list[1:len(list)-1]...)
		}
	}
	for some := range slices.Chunk(responses, turnsAtOnce) {
		var keys []store.Key
		for _, id := range some {
			keys = append(keys, signedKey(sc, inputKey+id), signedKey(sc, outputKey+id))
		}
		rows, err := m.table.GetMany(ctx, keys)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range some {
			in, out := rows[signedKey(sc, inputKey+id)], rows[signedKey(sc, outputKey+id)]
			if in == nil || out == nil {
				return nil, nil, nil
			}
			x, err := m.exchanged(ctx, memoryKey{sc, inputKey + id}, in)
			if err != nil {
				return nil, nil, err
			}
			output, err := m.seal.Open(ctx, memoryKey{sc, outputKey + id}.binding(), out.Bytes("sealed"))
			if err != nil {
				return nil, nil, err
			}
			add(x.Input)
			add(output)
		}
		if len(all) > most {
			break
		}
	}
	return append(all, ']'), responses, nil
}

func (m *Memory) exchanged(ctx context.Context, k memoryKey, row store.Item) (x exchanged, err error) {
	plain, err := m.seal.Open(ctx, k.binding(), row.Bytes("sealed"))
	if err == nil {
		err = json.Unmarshal(plain, &x)
	}
	return x, err
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
