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

// Tools that a search returned are part of tools/list for the rest of the session. They are
// stored in a row per session, so that any process can read them. The list of a client without
// a session never changes, as the protocol demands; such clients call what the search returned.

// maxKeptFound is the number of names stored per session; the latest are kept.
const maxKeptFound = 100

// partitionFound is the partition of the rows, with the id of the virtual server.
const partitionFound = "MCP_FOUND"

func (b *virtualServer) foundKey() store.Key {
	sum := sha256.Sum256([]byte(b.state.req.Session)) // the session id is bound to this caller
	return b.state.call.Caller.Scope.Partition(partitionFound, b.state.facts.Server.Record.ID).Key(hex.EncodeToString(sum[:16]))
}

// foundTools returns the names that searches of the session returned. It returns none if they
// cannot be read.
func (b *virtualServer) foundTools() (names []string) {
	if b.session == nil || b.state.call.Usage == nil {
		return nil
	}
	it, ok, err := b.state.call.Usage.Get(b.state.call.Context, b.foundKey(), true)
	if err != nil {
		slog.Warn("reading the tools that a session found failed", "trace_id", b.state.call.TraceID, "server", b.state.facts.Server.Record.ID, "error", err.Error())
	}
	if ok {
		_ = json.Unmarshal(it.Bytes("names"), &names) // written by saveFound
	}
	return names
}

// saveFound stores the tools that a search returned and notifies the client that its list has
// changed. Of two concurrent searches one may be lost from the list.
func (b *virtualServer) saveFound(offers []listedTool) {
	if b.session == nil || b.state.call.Usage == nil || len(offers) == 0 {
		return
	}
	names := b.foundTools()
	added := false
	for i := range offers {
		name := offers[i].name
		added = added || !slices.Contains(names, name)
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	if !added {
		return
	}
	for i := range offers {
		names = append(names, offers[i].name)
	}
	names = names[max(0, len(names)-maxKeptFound):]
	raw, _ := json.Marshal(names) // only strings
	row := store.Row{Key: b.foundKey(), Item: store.Item{"org": b.state.call.Caller.Scope.Org, "names": raw}, Expires: time.Unix(b.session.Expires, 0)}
	if err := b.state.call.Usage.Put(b.state.call.Context, row); err != nil {
		slog.Warn("storing the tools that a session found failed", "trace_id", b.state.call.TraceID, "server", b.state.facts.Server.Record.ID, "error", err.Error())
		return
	}
	if b.state.req.Streams && !b.state.call.Buffered {
		b.state.streaming = true
		b.state.call.Event(wire.AppendSSE(nil, "message", []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)), false, nil)
	}
}

// searchable returns the list of a server with search: the search tool, and the tools that the
// session has found and the caller may use.
func (b *virtualServer) searchable(all []listedTool) []listedTool {
	out := []listedTool{{mcp.SearchTool, searchTool}}
	if names := b.foundTools(); len(names) > 0 {
		for _, o := range all {
			if slices.Contains(names, o.name) {
				out = append(out, o)
			}
		}
	}
	return out
}
