package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"maps"
	"net/url"
	"slices"
	"sort"
	"strings"

	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// Query is what must be equal for a response to be used again.
type Query struct {
	Scope     store.Scope
	Operation string // request type: chatComplete, embed, ...
	Dialect   string // that the client speaks; empty where there is but one
	Lenient   bool   // the client takes members beyond its dialect
	Provider  string // type, e.g. openai
	Saved     string // id of a saved provider; empty for a credential of the request
	Model     string // as the provider takes it
	URL       string // upstream
	// Metadata and Namespace separate the requests that may share responses. With a
	// namespace the metadata is ignored.
	Metadata  map[string]string
	Namespace string
	// Guards names what judges and changes answers: a response that other guardrails have let
	// through does not count for these. Empty: there are none.
	Guards string
	Body   []byte // JSON object, as it is sent; its streaming members do not count
}

// WithBody returns the question with another body.
func (q Query) WithBody(body []byte) *Query {
	q.Body = body
	return &q
}

// Key finds a response. It is comparable.
type Key struct {
	scope store.Scope
	sum   [sha256.Size]byte
}

// ErrNotJSON is given for a body that is not a JSON object.
var ErrNotJSON = errors.New("cache: the body is not a JSON object")

// Key is the key of the question.
func (q *Query) Key() (Key, error) {
	members, err := membersOf(q.Body, "stream", "stream_options")
	if err != nil {
		return Key{}, err
	}
	h := q.begin("answer")
	members.write(h)
	return Key{q.Scope, sumOf(h)}, nil
}

// begin starts a hash with all but the body.
func (q *Query) begin(purpose string) hash.Hash {
	h := sha256.New()
	lenient := "strict"
	if q.Lenient {
		lenient = "lenient"
	}
	for _, s := range []string{purpose, q.Scope.Org, q.Scope.Workspace, q.Operation, q.Dialect, lenient, q.Provider, q.Saved, q.Model, q.URL} {
		write(h, []byte(s))
	}
	if q.Guards != "" {
		write(h, []byte("guards"))
		write(h, []byte(q.Guards))
	}
	if q.Namespace != "" {
		write(h, []byte("namespace"))
		write(h, []byte(q.Namespace))
		return h
	}
	write(h, []byte("metadata"))
	writeCount(h, len(q.Metadata))
	for _, k := range slices.Sorted(maps.Keys(q.Metadata)) {
		write(h, []byte(k))
		write(h, []byte(q.Metadata[k]))
	}
	return h
}

// write puts a text with its length into a hash, so that no two texts can read like two
// others.
func write(h hash.Hash, p []byte) {
	writeCount(h, len(p))
	h.Write(p)
}

func writeCount(h hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

func sumOf(h hash.Hash) (sum [sha256.Size]byte) {
	h.Sum(sum[:0])
	return sum
}

// member is one top-level member of a body, without white space.
type member struct{ key, value []byte }

type members []member

// membersOf reads the members of a body except those named, in the order of their names.
// Members of the same name keep their order.
func membersOf(body []byte, without ...string) (members, error) {
	var packed bytes.Buffer
	packed.Grow(len(body))
	if json.Compact(&packed, body) != nil || packed.Len() == 0 || packed.Bytes()[0] != '{' {
		return nil, ErrNotJSON
	}
	var all members
	in := wire.NewDecoder(packed.Bytes())
	for key := range in.Object {
		name := bytes.Clone(key)
		value := in.Raw()
		if !slices.Contains(without, string(name)) {
			all = append(all, member{name, value})
		}
	}
	if in.End() != nil {
		return nil, ErrNotJSON
	}
	sort.SliceStable(all, func(i, j int) bool { return bytes.Compare(all[i].key, all[j].key) < 0 })
	return all, nil
}

func (m members) write(h hash.Hash) {
	writeCount(h, len(m))
	for _, one := range m {
		write(h, one.key)
		write(h, one.value)
	}
}

// id is the key without its tenant.
func (k Key) id() string { return hex.EncodeToString(k.sum[:]) }

// keyOf is the key of an id in a tenant.
func keyOf(sc store.Scope, id string) (Key, bool) {
	k := Key{scope: sc}
	raw, err := hex.DecodeString(id)
	return k, err == nil && copy(k.sum[:], raw) == len(k.sum) && len(raw) == len(k.sum)
}

// table contains the rows of the cache.
const table = store.Usage

// row is the key of the response's row. The workspace's responses are spread over
// partitions by the first byte of the sum.
func (k Key) row() store.Key {
	id := k.id()
	return k.scope.Partition("CACHE", id[:2]).Key(id)
}

// binding is the place that the sealed answer belongs to, in a row as in a blob.
func (k Key) binding() seal.Binding {
	row := k.row()
	return seal.Binding{Org: k.scope.Org, Table: string(table), PK: row.PK(), SK: row.SK()}
}

// blobPrefix is what the keys of responses in the bucket begin with.
const blobPrefix = "cache/"

// blob is the key of the response in the bucket.
func (k Key) blob() string {
	return blobPrefix + url.PathEscape(k.scope.Org) + "/" + url.PathEscape(k.scope.Workspace) + "/" + k.id()
}

// ofBlob is the inverse of blob.
func ofBlob(name string) (Key, bool) {
	rest, ok := strings.CutPrefix(name, blobPrefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return Key{}, false
	}
	org, err1 := url.PathUnescape(parts[0])
	ws, err2 := url.PathUnescape(parts[1])
	if err1 != nil || err2 != nil || org == "" || ws == "" {
		return Key{}, false
	}
	return keyOf(store.Scope{Org: org, Workspace: ws}, parts[2])
}
