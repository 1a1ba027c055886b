package relay

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// stored is what a path says of things that a provider keeps.
type stored struct {
	collection string // files, batches, jobs ...; "" when the path names none
	id         string // "" for the collection itself
	below      bool   // the path goes on behind the id
	evasive    bool   // the path can be read in more ways than one
}

// collections are the path segments behind which providers keep things by ids.
// The one behind "fine_tuning" is "jobs", that behind "chat" is "completions".
var collections = map[string]bool{
	"files": true, "batches": true, "assistants": true, "threads": true, "vector_stores": true, "responses": true, "uploads": true,
	"conversations": true, "skills": true, "webhook_endpoints": true, "containers": true, "evals": true, "videos": true, "datasets": true, "cachedcontents": true, "tunedmodels": true,
}

// collectionAt tells whether a segment names a collection.
func collectionAt(segments []string, i int) (string, bool) {
	name := strings.ToLower(segments[i])
	switch {
	case collections[name]:
		return name, true
	case name == "jobs":
		return name, i > 0 && strings.EqualFold(segments[i-1], "fine_tuning")
	case name == "completions":
		return "chat/completions", i > 0 && strings.EqualFold(segments[i-1], "chat")
	case name == "models":
		return name, true
	}
	return "", false
}

// verbs stand where ids do, but name what is done: POST /threads/runs makes a
// thread and runs it.
var verbs = map[string]map[string]bool{
	"threads":   {"runs": true},
	"responses": {"compact": true, "input_tokens": true},
}

// storedIn finds the first collection in an escaped path, whatever stands before
// it, and the id behind it.
func storedIn(escapedPath string) stored {
	s := storedAmong(strings.Split(escapedPath, "/"))
	plain, err := url.PathUnescape(escapedPath)
	if err != nil {
		s.evasive = true
		return s
	}
	// A provider may take an escaped slash for a slash, dots for a way back, and
	// cut what stands behind a semicolon.
	segments := strings.FieldsFunc(plain, func(r rune) bool { return r == '/' || r == '\\' })
	for i, seg := range segments {
		s.evasive = s.evasive || seg == "." || seg == ".."
		segments[i], _, _ = strings.Cut(seg, ";")
	}
	s.evasive = s.evasive || strings.ContainsAny(plain, `\;`)
	if s.collection == "" && plain != escapedPath || s.evasive {
		if other := storedAmong(segments); s.collection == "" {
			s, s.evasive = other, true
		}
	}
	return s
}

func storedAmong(segments []string) (s stored) {
	kept := segments[:0:0]
	for _, seg := range segments {
		if seg == "" {
			continue
		}
		if plain, err := url.PathUnescape(seg); err == nil {
			seg = plain
		}
		kept = append(kept, seg)
	}
	for i := range kept {
		name, ok := collectionAt(kept, i)
		if !ok {
			continue
		}
		s.collection = name
		if i+1 < len(kept) {
			s.id, s.below = kept[i+1], i+2 < len(kept)
		}
		if verbs[name][s.id] && !s.below {
			s.id = ""
		}
		return s
	}
	return s
}

// creates tells whether a POST of the path makes a thing.
func (s *stored) creates() bool {
	return s.collection != "" && s.collection != "models" && s.collection != "chat/completions" && s.id == ""
}

// lists tells whether a GET of the path lists a collection.
func (s *stored) lists() bool { return s.collection != "" && s.collection != "models" && s.id == "" }

// idKeys are the members of bodies whose values are ids of stored things, at any
// depth: a text or a list of texts.
var idKeys = map[string]bool{
	"input_file_id": true, "training_file": true, "validation_file": true, "file_id": true, "file_ids": true, "assistant_id": true,
	"thread_id": true, "vector_store_id": true, "vector_store_ids": true, "previous_response_id": true, "response_id": true,
	"conversation": true, "conversation_id": true, "container": true, "container_id": true, "batch_id": true,
	"cachedContent": true, "cached_content": true,
}

// foreignKeys hold what belongs to the caller: names in it mean nothing here.
var foreignKeys = map[string]bool{"metadata": true, "parameters": true, "schema": true, "input_schema": true, "arguments": true}

// maxIDs bounds the ids of things that one body may name.
const maxIDs = 1000

// namedID is an id and the member that holds it.
type namedID struct{ field, id string }

// idsIn finds the ids of stored things in a JSON body.
func idsIn(body []byte) ([]namedID, error) {
	if len(body) == 0 {
		return nil, nil
	}
	w := idWalk{d: wire.NewDecoder(body)}
	w.value("", false)
	if err := w.d.Err(); err != nil {
		return nil, err
	}
	if len(w.found) > maxIDs {
		return nil, fault.Invalid(w.found[0].field, "names more than %d stored things", maxIDs)
	}
	return w.found, nil
}

type idWalk struct {
	d     *wire.Decoder
	found []namedID
}

// value reads one value; wanted: it stands under a key of idKeys.
func (w *idWalk) value(key string, wanted bool) {
	switch w.d.Kind() {
	case wire.KindString:
		if !wanted {
			w.d.Skip()
			return
		}
		if id := w.d.Str(); plausibleID(key, id) && len(w.found) <= maxIDs {
			w.found = append(w.found, namedID{key, id})
		}
	case wire.KindArray:
		if !wanted {
			key = ""
		}
		for range w.d.Array {
			w.value(key, wanted)
		}
	case wire.KindObject:
		if key == "input" { // of a tool call; the input of a response is a list
			w.d.Skip()
			return
		}
		from := typedID{}
		for k := range w.d.Object {
			switch name := string(k); {
			case foreignKeys[name]:
				w.d.Skip()
			case key == "source" && (name == "type" || name == "id") && w.d.Kind() == wire.KindString:
				from.read(name, w.d.Str())
			case key == "conversation" && name == "id":
				w.value(key, true)
			default:
				w.value(name, idKeys[name])
			}
		}
		if id := from.names(); id != "" && len(w.found) <= maxIDs {
			w.found = append(w.found, namedID{"source", id})
		}
	default:
		w.d.Skip()
	}
}

// typedID is the source of an evaluation: {"type":"file_id","id":"..."}, or a word
// for all that the holder of the credential has stored.
type typedID struct{ kind, id string }

func (t *typedID) read(name, s string) {
	if name == "type" {
		t.kind = s
	} else {
		t.id = s
	}
}

// names gives the id that the source names. What all workspaces have stored
// together counts as a thing that nobody made.
func (t *typedID) names() string {
	switch t.kind {
	case "file_id":
		return t.id
	case "stored_completions", "responses":
		return t.kind
	}
	return ""
}

// plausibleID leaves out words that stand where ids may.
func plausibleID(key, s string) bool {
	if key == "container" { // also the settings of one
		return strings.HasPrefix(s, "cntr_") || strings.HasPrefix(s, "container_")
	}
	return s != ""
}

// referredItem is the path of the first item of a response's input, or of a
// conversation, that is not sent but kept by the provider:
// {"type":"item_reference","id":"..."}, whose type may be left out; "" when there is
// none.
func referredItem(body []byte) (path string) {
	if !bytes.Contains(body, idKey) && !bytes.Contains(body, []byte(`\u00`)) {
		return ""
	}
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return ""
	}
	for key := range d.Object {
		name := string(key)
		if name != "input" && name != "items" || d.Kind() != wire.KindArray {
			continue
		}
		for i := range d.Array {
			if isReference(d) && path == "" {
				path = name + "[" + strconv.Itoa(i) + "]"
			}
		}
	}
	return path
}

var idKey = []byte(`"id"`)

// isReference reads an item: one without a type is a message when it has a role or
// a content.
func isReference(d *wire.Decoder) bool {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return false
	}
	kind, id, said := "", false, false
	for key := range d.Object {
		switch string(key) {
		case "type":
			if d.Kind() == wire.KindString {
				kind = d.Str()
			}
		case "id":
			id = d.Kind() == wire.KindString
		case "role", "content":
			said = said || !d.Null()
		}
	}
	return id && (kind == "item_reference" || kind == "" && !said)
}

// mayNameIDs looks whether a body may hold a key of idKeys, without walking it.
// All of them but few have an underscore in them, as has every id; a key can be
// hidden by an escape only.
func mayNameIDs(body []byte) bool {
	for rest := body; ; {
		i := bytes.IndexByte(rest, '_')
		if i < 0 {
			break
		}
		if rest = rest[i+1:]; bytes.HasPrefix(rest, idSuffix) {
			return true
		}
	}
	for rest := body; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 >= len(rest) {
			break
		}
		if rest[i+1] == 'u' && bytes.HasPrefix(rest[i+2:], escapedLetter) {
			return true
		}
		rest = rest[min(i+2, len(rest)):]
	}
	return bytes.Contains(body, conversationKey) || bytes.Contains(body, containerKey)
}

var (
	idSuffix        = []byte("id")
	escapedLetter   = []byte("00")
	conversationKey = []byte(`"conversation"`)
	containerKey    = []byte(`"container"`)
)

// linked are the members of answers that name further things that came to be
// with the one that is asked for.
var linked = wire.NewKeySet("id", "object", "output_file_id", "error_file_id", "result_files", "thread_id", "file", "name", "fine_tuned_model", "results_file_id")

// thingsOf gives the ids of what an answer says to exist. made: the answer is of
// a request that made a thing.
func thingsOf(answer []byte, made bool) (ids []string) {
	var w wire.Walk
	if linked.Walk(answer, &w) != nil {
		return nil
	}
	add := func(raw []byte) {
		if s, err := wire.ScanString(raw, ""); err == nil && s != "" {
			ids = append(ids, s)
		}
	}
	for i, key := range linked.Keys() {
		if !w.Spans[i].Present(answer) {
			continue
		}
		raw := w.Spans[i].Of(answer)
		switch key {
		case "object":
		case "id":
			if made {
				add(raw)
			}
		case "name": // files/abc, cachedContents/abc; elsewhere the caller's own word
			if made && w.Spans[0].Absent() && w.Spans[1].Absent() {
				if s, err := wire.ScanString(raw, ""); err == nil && strings.Contains(s, "/") {
					ids = append(ids, s[strings.LastIndexByte(s, '/')+1:], s)
				}
			}
		case "result_files":
			if wire.KindOf(raw) == wire.KindArray {
				d := wire.NewDecoder(raw)
				for range d.Array {
					if v := d.Raw(); wire.KindOf(v) == wire.KindString {
						add(v)
					}
				}
			}
		case "file":
			if wire.KindOf(raw) == wire.KindObject {
				ids = append(ids, thingsOf(raw, true)...)
			}
		default:
			add(raw)
		}
	}
	return ids
}
