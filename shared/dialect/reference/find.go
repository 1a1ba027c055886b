package reference

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/wire"
)

// Reference is a name in a body.
type Reference struct {
	Field   string // path of the field, such as input[0].file_id
	Kind    Kind
	ID      string // as the provider knows it; the hash of a secret (see Hash)
	Context bool   // the provider adds what it names to the input of the model
	TooLong bool   // a secret of more than MaxToken bytes
}

// Object reports whether the reference names an object in the provider's account.
func (r *Reference) Object() bool { return r.Kind != Model && r.Kind != URL }

// MaxToken is the length of the secrets that providers give out, in bytes: longer ones are not
// seen in streams.
const MaxToken = 256 << 10

// Max is the number of references after which Find stops collecting.
const Max = 10_000

// Find returns the references in a JSON body, at any depth, in their order. It returns a
// *fault.Fault for a body that is not JSON, together with what precedes the error.
func Find(body []byte) ([]Reference, error) {
	if len(body) == 0 {
		return nil, nil
	}
	f := finder{d: wire.NewDecoder(body)}
	f.value("", "", false)
	if err := f.d.Err(); err != nil {
		return f.found, err
	}
	return f.found, f.d.End()
}

// dataURL begins content that is part of the body.
var dataURL = []byte(`"data:`)

// FindInField returns the references in a field of a form: name, name[], name[inner], each
// with text or JSON as its value.
func FindInField(name string, value []byte) ([]Reference, error) {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '[' || r == ']' || r == '.' })
	if len(parts) == 0 {
		return nil, nil
	}
	raw := value
	if kind := wire.KindOf(raw); kind != wire.KindObject && kind != wire.KindArray {
		raw = wire.AppendJSONString(nil, string(value))
	}
	for i := len(parts) - 1; i >= 0; i-- {
		raw = append(append(append([]byte{'{'}, wire.AppendJSONString(nil, parts[i])...), ':'), append(raw, '}')...)
	}
	return Find(raw)
}

type finder struct {
	d     *wire.Decoder
	path  []string // elements of lists are [n]
	depth int      // objects around the value
	found []Reference
}

// value reads the value of a key in the object of another key, the parent. Both are
// canonical.
func (f *finder) value(parent, key string, inList bool) {
	switch f.d.Kind() {
	case wire.KindString:
		row, ok := rowOf(parent, key, inList)
		raw := f.d.Raw()
		if !ok || row.kind == "" || len(f.found) >= Max || row.form == address && bytes.HasPrefix(raw, dataURL) {
			return
		}
		if value, err := wire.ScanString(raw, key); err == nil {
			f.add(row, value)
		}
	case wire.KindArray:
		for i := range f.d.Array {
			f.path = append(f.path, "["+strconv.Itoa(i)+"]")
			f.value(parent, key, true)
			f.path = f.path[:len(f.path)-1]
		}
	case wire.KindObject:
		f.object(parent, key, inList)
	default:
		f.d.Skip()
	}
}

func (f *finder) object(parent, key string, inList bool) {
	if opaque[key] || opaque[parent+"."+key] || opaqueBelow[key] && f.depth > 1 && !inList && parent != "request" {
		f.d.Skip()
		return
	}
	var typed typedSource
	isModel := isModelKey(key)
	f.depth++
	for k := range f.d.Object {
		name := string(k)
		f.path = append(f.path, name)
		switch inner := canonical(name); {
		case key == "source" && (inner == "type" || inner == "id") && f.d.Kind() == wire.KindString:
			typed.read(inner, f.d.Str())
		case isModel && (inner == "id" || inner == "name") && f.d.Kind() == wire.KindString:
			f.add(field{kind: Model, form: model}, f.d.Str())
		default:
			f.value(key, inner, false)
		}
		f.path = f.path[:len(f.path)-1]
	}
	f.depth--
	if ref, ok := typed.reference(); ok && len(f.found) < Max {
		ref.Field = f.at()
		f.found = append(f.found, ref)
	}
}

// at is the path of the current value.
func (f *finder) at() string {
	var b strings.Builder
	for _, p := range f.path {
		if b.Len() > 0 && p[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

func (f *finder) add(row field, value string) {
	if len(row.prefixes) > 0 && !slices.ContainsFunc(row.prefixes, func(p string) bool { return strings.HasPrefix(value, p) }) {
		return
	}
	if value == "" || slices.Contains(row.settings, value) {
		return
	}
	ref := Reference{Kind: row.kind, ID: value, Context: row.context}
	switch row.form {
	case address:
		var ok bool
		if ref.Kind, ref.ID, ok = Address(value); !ok {
			return
		}
	case token:
		ref.ID, ref.TooLong = Hash(value), len(value) > MaxToken
	}
	ref.Field = f.at()
	f.found = append(f.found, ref)
}

func rowOf(parent, key string, inList bool) (field, bool) {
	if row, ok := fields[parent+"."+key]; ok {
		return row, true
	}
	if row, ok := fields[key]; ok {
		return row, true
	}
	if hasSuffix(key, addressSuffixes) {
		return field{kind: File, form: address}, true
	}
	// {"fallbacks":[{"a":["b"]}]}: the list of a model names those that replace it.
	return field{kind: Model, form: model}, isModelKey(key) || inList && hasSuffix(parent, fallbackKeys)
}

func isModelKey(key string) bool {
	return !notModels[key] && hasSuffix(key, modelSuffixes)
}

func hasSuffix(key string, suffixes []string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(key, s) })
}

// typedSource is the source of an evaluation: {"type":"file_id","id":"..."}, or a type
// that selects everything of a kind that the account has stored.
type typedSource struct{ kind, id string }

func (t *typedSource) read(name, s string) {
	if name == "type" {
		t.kind = s
	} else {
		t.id = s
	}
}

// reference returns the file that the source names. For everything that an account has
// stored it returns an id that no object has.
func (t *typedSource) reference() (Reference, bool) {
	switch {
	case t.kind == "file_id" && t.id != "":
		return Reference{Kind: File, ID: t.id, Context: true}, true
	case t.kind == "stored_completions" || t.kind == "responses":
		return Reference{Kind: Response, ID: t.kind, Context: true}, true
	}
	return Reference{}, false
}

// Hash is the id under which an opaque token is known. It does not reveal the token, which
// may be longer than ids are.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "handle-" + hex.EncodeToString(sum[:])
}

// Address returns what the address of a file or an image refers to: a file of Gemini's
// (https://host/v1beta/files/abc, or files/abc), an object of a cloud's storage, or a URL.
// ok is false for content that is part of the body, and for other text.
func Address(s string) (kind Kind, id string, ok bool) {
	lower := strings.ToLower(s[:min(len(s), 8)])
	switch {
	case strings.HasPrefix(lower, "gs://"), strings.HasPrefix(lower, "s3://"), strings.HasPrefix(lower, "bq://"):
		return Storage, s, true
	}
	if file := fileOf(s); file != "" {
		return File, file, true
	}
	if strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://") {
		return URL, s, true
	}
	return "", "", false
}

// googleFiles is the host of Gemini's files.
const googleFiles = "generativelanguage.googleapis.com"

func fileOf(uri string) string {
	scheme, rest, remote := strings.Cut(uri, "://")
	if !remote {
		return relativeFile(uri)
	}
	host, path, _ := strings.Cut(rest, "/")
	version, id, ok := strings.Cut(path, "/files/")
	if end := strings.IndexAny(id, "?#:/"); end >= 0 {
		id = id[:end]
	}
	switch {
	case ok && isGoogleVersion(version) && isFileID(id):
		return "files/" + id
	case !strings.HasPrefix(strings.ToLower(scheme), "http"):
		return ""
	case strings.HasSuffix(strings.TrimSuffix(strings.ToLower(host), ":443"), googleFiles):
		return uri // in a spelling that cannot be compared
	}
	return ""
}

// relativeFile returns the file of an address without a scheme.
func relativeFile(uri string) string {
	at := strings.Trim(uri, " \t\r\n/")
	if version, rest, ok := strings.Cut(at, "/"); ok && isGoogleVersion(version) {
		at = strings.TrimLeft(rest, "/")
	}
	if id, ok := strings.CutPrefix(at, "files/"); ok && isFileID(id) {
		return at
	}
	if strings.Contains(strings.ToLower(uri), googleFiles+"/") {
		return uri // in a spelling that cannot be compared
	}
	return ""
}

// isFileID reports whether Gemini may have given a file the id.
func isFileID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

func isGoogleVersion(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9'
}
