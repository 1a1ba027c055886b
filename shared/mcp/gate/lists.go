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

// maxAge bounds how long a client may rely on an answer, since access that is taken away
// must end within that time.
const maxAge = 2 * time.Second

// maxLists bounds the pages of lists that are kept of one server.
const maxLists = 1000

// list is a page of what a server lists.
type list struct {
	entries []entry
	size    int             // of the entries together, in bytes
	next    json.RawMessage // cursor of the next page; nil: the last
	expires time.Time
	age     time.Duration // that the server allows; 0: it is not kept
	shared  bool          // it is the same for all callers
}

// listKey names a page. What a client sends as a cursor stands apart from the user, so that
// it names nobody else's page.
type listKey struct {
	method, cursor string
	user           string // "" for a page that is the same for all
	shared         bool
}

// listKeys name a page where it is the same for all, and where it is a user's own.
func listKeys(method, cursor, user string) (common, own listKey) {
	return listKey{method: method, cursor: cursor, shared: true}, listKey{method: method, cursor: cursor, user: user}
}

type entry struct {
	key string
	bad bool // of a form that the protocol without sessions does not allow
	raw json.RawMessage
}

// listed are how capabilities are listed: their type, the member of the result, and of
// an entry the one that names it.
var listed = map[string]struct{ kind, member, key string }{
	"tools/list":               {mcp.Tool, "tools", "name"},
	"prompts/list":             {mcp.Prompt, "prompts", "name"},
	"resources/list":           {mcp.Resource, "resources", "uri"},
	"resources/templates/list": {mcp.ResourceTemplate, "resourceTemplates", "uriTemplate"},
}

// serveList answers with those entries that the caller may use.
func serveList(v *visit, w *way) error {
	of := listed[v.req.Method]
	if raw := v.req.Members["cursor"]; raw != nil && raw[0] != '"' && raw[0] != 'n' { // null is none
		wrong(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params.cursor is not one that was given"})
		return nil
	}
	page, err := listPage(v, w)
	if err != nil {
		return err
	}
	modern := v.req.Era == protocolversion.Stateless
	room := newRoom(page.size + len(page.next) + len(v.req.ID) + 256)
	defer room.free()
	out := append(appendOpened(room.b, v.req.ID, "result"), `{"`...)
	out = append(append(out, of.member...), `":[`...)
	first := true
	for i := range page.entries {
		e := &page.entries[i]
		if modern && e.bad || v.facts.Decide(authz.Capability{Type: of.kind, Key: e.key}) != authz.Allowed {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(out, e.raw...)
	}
	out = append(out, ']')
	if page.next != nil {
		out = append(append(out, `,"nextCursor":`...), page.next...)
	}
	if modern {
		out = appendAge(append(out, `,"resultType":"complete"`...), page.age)
	}
	room.b = append(out, '}', '}')
	sendLast(v, http.StatusOK, room.b, nil)
	return nil
}

// appendAge appends how long an answer holds, for this caller alone.
func appendAge(out []byte, age time.Duration) []byte {
	out = append(out, `,"ttlMs":`...)
	out = strconv.AppendInt(out, min(age, maxAge).Milliseconds(), 10)
	return append(out, `,"cacheScope":"private"`...)
}

// listPage gives a page as the server lists it, which may be one that was kept.
func listPage(v *visit, w *way) (*list, error) {
	common, own := listKeys(v.req.Method, v.req.Text("cursor"), principal(v))
	now := v.call.Now()
	w.peer.mu.Lock()
	for _, key := range [...]listKey{common, own} {
		if kept := w.peer.lists[key]; kept != nil && now.Before(kept.expires) {
			w.peer.mu.Unlock()
			return kept, nil
		}
	}
	w.peer.mu.Unlock()
	result, err := w.ask(&outgoing{req: v.req, params: upstreamParams(v, w), id: v.req.ID})
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

// readPage reads a result.
func readPage(v *visit, w *way, result json.RawMessage) (*list, error) {
	of := listed[v.req.Method]
	members := mcp.Members(result)
	var raws []json.RawMessage
	strange := upstream.Fail(http.StatusOK, "the server's answer to %s has another form than the protocol's", v.req.Method)
	if members == nil || json.Unmarshal(members[of.member], &raws) != nil {
		return nil, strange
	}
	page := &list{entries: make([]entry, 0, len(raws))}
	for _, raw := range raws {
		named := mcp.Members(raw)
		e := entry{raw: raw}
		if named == nil {
			return nil, strange
		}
		if json.Unmarshal(named[of.key], &e.key) != nil || e.key == "" {
			continue // nobody could ask for it
		}
		if of.kind == mcp.Tool {
			marks, ok := protocolversion.Marks(named["inputSchema"])
			if e.bad = !ok; len(marks) > 0 {
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
		return nil, strange
	}
	if next != "" {
		page.next = members["nextCursor"]
	}
	if w.kind == toStateless {
		page.age, page.shared = ageOf(members)
	}
	return page, nil
}

// ageOf is how long a server says that an answer holds, and whether for all callers.
func ageOf(members map[string]json.RawMessage) (age time.Duration, shared bool) {
	var ms float64
	var scope string
	if json.Unmarshal(members["ttlMs"], &ms) != nil || ms <= 0 {
		return 0, false
	}
	_ = json.Unmarshal(members["cacheScope"], &scope) // another form is private
	return time.Duration(min(ms, 1e9)) * time.Millisecond, scope == "public"
}
