package kept

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// idKeys are the members of bodies whose values are ids of stored things, at any
// depth: a text or a list of texts.
var idKeys = map[string]bool{
	"input_file_id": true, "training_file": true, "validation_file": true, "file_id": true, "file_ids": true, "assistant_id": true,
	"thread_id": true, "vector_store_id": true, "vector_store_ids": true, "previous_response_id": true, "response_id": true,
	"conversation": true, "conversation_id": true, "container": true, "container_id": true, "batch_id": true,
	"previous_interaction_id": true, "interaction_id": true, "cachedContent": true, "cached_content": true,
	"comparison_response_id": true, "skill_id": true, "consent": true, "voice": true, "video": true, "fileUri": true, "file_uri": true,
	"fileName": true, "file_name": true,
}

// objects are members whose value may be an object with the id in it. That of a sound always
// is one; elsewhere in bodies audio is the sound itself.
var objects = map[string]bool{"conversation": true, "container": true, "voice": true, "video": true, "audio": true}

// resumed are members whose handle opens a session of Gemini's again, with all that was said
// in it.
var resumed = map[string]bool{"sessionResumption": true, "session_resumption": true}

// Handle is the id under which such a handle is known. It tells nobody the handle itself,
// which may be longer than ids are.
func Handle(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return "handle-" + hex.EncodeToString(sum[:])
}

// foreignKeys hold data of the caller's own, in which members named like those of idKeys
// mean nothing.
var foreignKeys = map[string]bool{
	"metadata": true, "parameters": true, "schema": true, "input_schema": true, "arguments": true,
	"args": true, "functionResponse": true, "function_response": true, "functionResponses": true, "function_responses": true, // of Gemini's tools
}

// maxIDs bounds the ids of things that one body may name.
const maxIDs = 1000

// Named is an id and the member that holds it.
type Named struct{ Field, ID string }

// IDsIn finds the ids of stored things in a JSON body.
func IDsIn(body []byte) ([]Named, error) {
	if len(body) == 0 {
		return nil, nil
	}
	w := idWalk{d: wire.NewDecoder(body)}
	w.value("", false)
	if err := w.d.Err(); err != nil {
		return nil, err
	}
	if len(w.found) > maxIDs {
		return nil, fault.Invalid(w.found[0].Field, "names more than %d stored things", maxIDs)
	}
	return w.found, nil
}

type idWalk struct {
	d     *wire.Decoder
	found []Named
}

// value reads one value; wanted: it stands under a key of idKeys.
func (w *idWalk) value(key string, wanted bool) {
	switch w.d.Kind() {
	case wire.KindString:
		if !wanted {
			w.d.Skip()
			return
		}
		if id := storedID(key, w.d.Str()); id != "" && len(w.found) <= maxIDs {
			w.found = append(w.found, Named{key, id})
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
			case objects[key] && name == "id":
				w.value(key, true)
			case resumed[key] && name == "handle":
				w.value(name, true)
			default:
				w.value(name, idKeys[name])
			}
		}
		if id := from.names(); id != "" && len(w.found) <= maxIDs {
			w.found = append(w.found, Named{"source", id})
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

// names gives the id that the source names. For "all that the workspaces have stored
// together" it gives an id that nobody made, so that it is refused.
func (t *typedID) names() string {
	switch t.kind {
	case "file_id":
		return t.id
	case "stored_completions", "responses":
		return t.kind
	}
	return ""
}

// prefixes begin the ids of those keys whose values may also be plain words: settings, or
// things that everybody may use, such as the provider's own voices and skills.
var prefixes = map[string][]string{
	"container": {"cntr_", "container_"}, "skill_id": {"skill_"}, "consent": {"cons_"}, "voice": {"voice_"}, "video": {"video_"},
}

// storedID is the id that the value of a key names; "" for words that stand where ids may.
func storedID(key, s string) string {
	if begin, ok := prefixes[key]; ok && !slices.ContainsFunc(begin, func(p string) bool { return strings.HasPrefix(s, p) }) {
		return ""
	}
	switch key {
	case "fileUri", "file_uri", "fileName", "file_name":
		return fileOf(s)
	case "handle":
		if s != "" { // an empty one begins a new session
			return Handle(s)
		}
	}
	return s
}

// fileOf is the file of Gemini that an address names: https://host/v1beta/files/abc, or
// files/abc; "" for addresses of what is not kept there.
func fileOf(uri string) string {
	at, id, ok := strings.Cut(uri, "files/")
	if ok && id != "" && (at == "" || strings.HasSuffix(at, "/") && isGoogleVersion(strings.TrimSuffix(at, "/"))) {
		id, _, _ = strings.Cut(id, "?")
		return "files/" + id
	}
	return ""
}

func isGoogleVersion(at string) bool {
	last := at[strings.LastIndexByte(at, '/')+1:]
	return len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9'
}

// Files are those of the ids that are of files: what a translated conversation still names.
func Files(ids []Named) []Named {
	return slices.DeleteFunc(ids, func(n Named) bool { return !strings.HasPrefix(n.Field, "file") })
}

// ReferredItem is the path of the first item of a response's input, or of a
// conversation, that is not sent but kept by the provider:
// {"type":"item_reference","id":"..."}, whose type may be left out; "" when there is
// none.
func ReferredItem(body []byte) (path string) {
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

// MayNameIDs looks whether a body may hold a key of idKeys, without walking it.
// All of them but few have an underscore in them, as has every id; a key can be
// hidden by an escape only.
func MayNameIDs(body []byte) bool {
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
	return slices.ContainsFunc(bare, func(s []byte) bool { return bytes.Contains(body, s) })
}

// bare are the keys of idKeys without _id, or the beginnings of their values.
var bare = [][]byte{
	[]byte(`"handle"`), []byte(`"conversation"`), []byte(`"container"`), []byte(`"audio"`), []byte(`"voice_`), []byte(`"video_`), []byte(`"cons_`), []byte(`"fileUri"`), []byte(`"file_uri"`), []byte(`"fileName"`), []byte(`"file_name"`), []byte(`"cachedContent"`), []byte(`"cached_content"`),
}

var (
	idSuffix      = []byte("id")
	escapedLetter = []byte("00")
)
