package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"gateway/shared/egress"
)

// Limits of a connection's memory.
const (
	maxKept      = 8       // responses
	maxKeptBytes = 4 << 20 // of all their items
)

// ownPrefix starts the ids of responses that the gateway has prepared without a provider.
const ownPrefix = "resp_gw_"

// kept are the latest responses that no provider stores, with the conversations up to them.
type kept struct {
	mu    sync.Mutex
	lease egress.Lease
	all   []conversation // the oldest first
	bytes int
}

// conversation is a conversation up to a response.
type conversation struct {
	id    string
	from  string // id of a response stored by a provider that this continues; "" for none
	items []byte // later items, separated by commas; immutable
}

// find returns the conversation up to a response.
func (k *kept) find(id string) (s conversation, known bool) {
	if id == "" {
		return conversation{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.all {
		if k.all[i].id == id {
			return k.all[i], true
		}
	}
	return conversation{}, false
}

// note stores a conversation, and drops the oldest if the limit is reached. A conversation that
// is too long, or for which there is no memory, is not stored.
func (k *kept) note(ctx context.Context, s conversation) {
	n := len(s.items)
	if n > maxKeptBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.all) > 0 && (len(k.all) >= maxKept || k.bytes+n > maxKeptBytes) {
		old := len(k.all[0].items)
		k.bytes -= old
		k.lease.Give(int64(old))
		k.all = append(k.all[:0], k.all[1:]...)
	}
	if k.lease.Take(ctx, int64(n)) != nil {
		return
	}
	k.bytes += n
	k.all = append(k.all, s)
}

// reusableItems returns the items of a response that can be sent again, to a provider that does not
// have them.
func reusableItems(response []byte) (id string, items []byte) {
	var r struct {
		ID     string                       `json:"id"`
		Output []map[string]json.RawMessage `json:"output"`
	}
	if json.Unmarshal(response, &r) != nil {
		return "", nil
	}
	var out [][]byte
	for _, item := range r.Output {
		if sealed := item["encrypted_content"]; string(item["type"]) == `"reasoning"` && (sealed == nil || string(sealed) == "null") {
			continue // only its host could find it by its id
		}
		delete(item, "id")
		if raw, err := json.Marshal(item); err == nil {
			out = append(out, raw)
		}
	}
	return r.ID, bytes.Join(out, []byte(","))
}

// prepare serves a response with generate false: the conversation is stored for later responses,
// and no provider is called.
func (d *Dialogue) prepare(in *create) {
	d.mu.Lock()
	d.prepared++
	id := ownPrefix + d.ID + "_" + strconv.Itoa(d.prepared)
	d.mu.Unlock()
	d.kept.note(d.context, conversation{id, in.from, in.input})
	for i, event := range [...]struct{ kind, status string }{{"response.created", "in_progress"}, {"response.completed", "completed"}} {
		body, err := json.Marshal(map[string]any{
			"type": event.kind, "sequence_number": i, "response": map[string]any{
				"id": id, "object": "response", "created_at": d.Now().Unix(), "status": event.status, "model": in.model, "output": []any{},
				"error": nil, "incomplete_details": nil, "usage": nil, "store": false,
			},
		})
		if err != nil {
			d.Responder.Fail("event of a prepared response", err)
			return
		}
		d.tell(in.lane, body)
	}
}
