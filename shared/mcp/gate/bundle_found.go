package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// What a client with a session has found is in tools/list from then on. It is kept in a row
// of the session, which any process can read, because the session's id is sealed and does
// not change. The list of clients without a session never changes by a search, as the
// protocol demands; they call what the search answered.

// maxKeptFound bounds the names that are kept of a session: the latest.
const maxKeptFound = 100

// partitionFound is that of the rows, with the id of the virtual server.
const partitionFound = "MCP_FOUND"

func (b *bundle) foundKey() store.Key {
	sum := sha256.Sum256([]byte(b.visit.req.Session)) // opened for this caller, and nobody else
	return b.visit.call.Caller.Scope.Partition(partitionFound, b.visit.facts.Server.Record.ID).Key(hex.EncodeToString(sum[:16]))
}

// found are the names that the session has found; none where it cannot be read.
func (b *bundle) found() (names []string) {
	if b.session == nil || b.visit.call.Kept == nil {
		return nil
	}
	it, ok, err := b.visit.call.Kept.Get(b.visit.call.Context, b.foundKey(), true)
	if err != nil {
		slog.Warn("what a session has found cannot be read", "trace_id", b.visit.call.TraceID, "server", b.visit.facts.Server.Record.ID, "error", err.Error())
	}
	if ok {
		_ = json.Unmarshal(it.Bytes("names"), &names) // written below
	}
	return names
}

// keep notes what the session has found, and tells the client that its list has changed. Of
// two searches at the same time one may be lost from the list; its answer has the tools all
// the same.
func (b *bundle) keep(offers []offer) {
	if b.session == nil || b.visit.call.Kept == nil || len(offers) == 0 {
		return
	}
	names := b.found()
	fresh := false
	for i := range offers {
		name := offers[i].name
		fresh = fresh || !slices.Contains(names, name)
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	if !fresh {
		return
	}
	for i := range offers {
		names = append(names, offers[i].name)
	}
	names = names[max(0, len(names)-maxKeptFound):]
	raw, _ := json.Marshal(names) // texts
	row := store.Row{Key: b.foundKey(), Item: store.Item{"org": b.visit.call.Caller.Scope.Org, "names": raw}, Expires: time.Unix(b.session.Expires, 0)}
	if err := b.visit.call.Kept.Put(b.visit.call.Context, row); err != nil {
		slog.Warn("what a session has found cannot be kept", "trace_id", b.visit.call.TraceID, "server", b.visit.facts.Server.Record.ID, "error", err.Error())
		return
	}
	if b.visit.req.Streams && !b.visit.call.Buffered {
		b.visit.began = true
		b.visit.call.Event(wire.AppendSSE(nil, "message", []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)), false, nil)
	}
}

// searchable is the list where a search replaces it: the search tool, and what the session
// has found that the caller may use.
func (b *bundle) searchable(all []offer) []offer {
	out := []offer{{mcp.SearchTool, searchTool}}
	if names := b.found(); len(names) > 0 {
		for _, o := range all {
			if slices.Contains(names, o.name) {
				out = append(out, o)
			}
		}
	}
	return out
}
