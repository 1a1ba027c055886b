package gate

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
)

// maxAge limits how long a client may cache a response, because revoked access must end within
// this time.
const maxAge = 2 * time.Second

// maxLists is the number of cached pages per server.
const maxLists = 1000

// list is a page of a server's list.
type list struct {
	entries []entry
	size    int             // total size of the entries in bytes
	next    json.RawMessage // cursor of the next page, or nil
	expires time.Time
	age     time.Duration // cache lifetime that the server allows; zero if not cacheable
	shared  bool          // the page is the same for all callers
}

// listKey identifies a page. The client's cursor and the user are separate fields, so that a
// cursor cannot select the page of another user.
type listKey struct {
	method, cursor string
	user           string // empty for shared pages
	shared         bool
}

// listKeys returns the keys of the shared page and of the user's page.
func listKeys(method, cursor, user string) (common, own listKey) {
	return listKey{method: method, cursor: cursor, shared: true}, listKey{method: method, cursor: cursor, user: user}
}

type entry struct {
	key     string
	invalid bool // not valid in the stateless protocol
	raw     json.RawMessage
}

// listMethods describes how capabilities are listed: their type, the field of the result, and
// the key field of an entry.
var listMethods = map[string]struct{ kind, member, key string }{
	"tools/list":               {mcp.Tool, "tools", "name"},
	"prompts/list":             {mcp.Prompt, "prompts", "name"},
	"resources/list":           {mcp.Resource, "resources", "uri"},
	"resources/templates/list": {mcp.ResourceTemplate, "resourceTemplates", "uriTemplate"},
}

// serveList responds with the entries that the caller may use.
func serveList(v *requestState, w *bridge) error {
	of := listMethods[v.req.Method]
	if raw := v.req.Fields["cursor"]; raw != nil && raw[0] != '"' && raw[0] != 'n' { // null means no cursor
		sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.cursor is unknown; use nextCursor of the previous page"})
		return nil
	}
	page, err := listPage(v, w)
	if err != nil {
		return err
	}
	modern := v.req.Kind == protocolversion.Stateless
	buf := newBuffer(page.size + len(page.next) + len(v.req.ID) + 256)
	defer buf.free()
	out := append(appendResponseHead(buf.b, v.req.ID, "result"), `{"`...)
	out = append(append(out, of.member...), `":[`...)
	shown := make([]json.RawMessage, 0, len(page.entries))
	for i := range page.entries {
		e := &page.entries[i]
		if modern && e.invalid || v.facts.Decide(authz.Capability{Type: of.kind, Key: e.key}) != authz.Allowed {
			continue
		}
		shown = append(shown, e.raw)
	}
	first := true
	for _, raw := range allowedEntries(v, of.key, shown) {
		if raw == nil {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(out, raw...)
	}
	out = append(out, ']')
	if page.next != nil {
		out = append(append(out, `,"nextCursor":`...), page.next...)
	}
	if modern {
		out = appendAge(append(out, `,"resultType":"complete"`...), page.age)
	}
	buf.b = append(out, '}', '}')
	sendLast(v, http.StatusOK, buf.b, nil)
	return nil
}

// appendAge appends how long this caller may cache the response.
func appendAge(out []byte, age time.Duration) []byte {
	out = append(out, `,"ttlMs":`...)
	out = strconv.AppendInt(out, min(age, maxAge).Milliseconds(), 10)
	return append(out, `,"cacheScope":"private"`...)
}

// listPage returns a page of the server, which may be cached.
func listPage(v *requestState, w *bridge) (*list, error) {
	common, own := listKeys(v.req.Method, v.req.Text("cursor"), principal(v))
	now := v.call.Now()
	w.peer.mu.Lock()
	for _, key := range [...]listKey{common, own} {
		if cached := w.peer.lists[key]; cached != nil && now.Before(cached.expires) {
			w.peer.mu.Unlock()
			return cached, nil
		}
	}
	w.peer.mu.Unlock()
	result, err := w.roundTrip(&outgoing{req: v.req, params: upstreamParams(v, w), id: v.req.ID})
	if err != nil {
		return nil, err
	}
	page, err := readPage(v, w, result)
	if err != nil || page.age == 0 || w.kind != toStateless {
		return page, err
	}
	page.expires = now.Add(min(page.age, maxAge))
	w.peer.mu.Lock()
	defer w.peer.mu.Unlock()
	if len(w.peer.lists) >= maxLists {
		clear(w.peer.lists)
	}
	if page.shared {
		own = common
	}
	w.peer.lists[own] = page
	return page, nil
}

// readPage decodes a result.
func readPage(v *requestState, w *bridge, result json.RawMessage) (*list, error) {
	of := listMethods[v.req.Method]
	members := mcp.Fields(result)
	var raws []json.RawMessage
	malformed := upstream.Fail(http.StatusOK, "the server's response to %s does not match the protocol", v.req.Method)
	if members == nil || json.Unmarshal(members[of.member], &raws) != nil {
		return nil, malformed
	}
	page := &list{entries: make([]entry, 0, len(raws))}
	for _, raw := range raws {
		named := mcp.Fields(raw)
		e := entry{raw: raw}
		if named == nil {
			return nil, malformed
		}
		if json.Unmarshal(named[of.key], &e.key) != nil || e.key == "" {
			continue // it could not be called
		}
		if of.kind == mcp.Tool {
			marks, ok := protocolversion.HeaderParams(named["inputSchema"])
			if e.invalid = !ok; len(marks) > 0 {
				w.peer.mu.Lock()
				w.peer.marks[e.key] = marks
				w.peer.mu.Unlock()
			}
		}
		page.entries = append(page.entries, e)
		page.size += len(raw) + 1
	}
	if of.kind == mcp.Tool {
		w.peer.recordNames(page.entries)
	}
	var next string
	if raw := members["nextCursor"]; raw != nil && json.Unmarshal(raw, &next) != nil {
		return nil, malformed
	}
	if next != "" {
		page.next = members["nextCursor"]
	}
	if w.kind == toStateless {
		page.age, page.shared = cacheAge(members)
	}
	return page, nil
}

// cacheAge returns how long the server allows caching, and whether for all callers.
func cacheAge(members map[string]json.RawMessage) (age time.Duration, shared bool) {
	var ms float64
	var scope string
	if json.Unmarshal(members["ttlMs"], &ms) != nil || ms <= 0 {
		return 0, false
	}
	_ = json.Unmarshal(members["cacheScope"], &scope) // an unexpected type means private
	return time.Duration(min(ms, 1e9)) * time.Millisecond, scope == "public"
}
