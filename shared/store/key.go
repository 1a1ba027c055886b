package store

import (
	"strings"
)

// Scope is the tenant that a row belongs to. Workspace is empty for rows of the
// organization itself.
type Scope struct {
	Org       string
	Workspace string
}

// Organization is the scope without its workspace.
func (s Scope) Organisation() Scope { return Scope{Org: s.Org} }

// Partition names the rows of one tenant in one table: ORG#o or ORG#o#WS#w,
// followed by parts joined with '#'.
func (s Scope) Partition(parts ...string) Partition {
	if s.Org == "" {
		panic("store: a scope without an organisation")
	}
	var b strings.Builder
	b.WriteString("ORG#")
	b.WriteString(clean(s.Org))
	if s.Workspace != "" {
		b.WriteString("#WS#")
		b.WriteString(clean(s.Workspace))
	}
	for _, p := range parts {
		b.WriteByte('#')
		b.WriteString(p)
	}
	return Partition{b.String()}
}

// Credential is the partition of a row that is found by the hash of a secret (API key,
// session, invite, download token) before its tenant is known. kind is upper case, hash
// is hex; the row contains the Scope. Such rows have the sort key "-".
func Credential(kind, hash string) Key {
	return Partition{kind + "#" + clean(hash)}.Key("-")
}

// System is a partition of internal records that span tenants: outboxes and due lists.
// The row contains the tenant. It must never be used for a resource.
func System(name string) Partition { return Partition{"SYS#" + name} }

// Partition is all rows with one partition key.
type Partition struct{ pk string }

// Key is the row of the partition with the sort key made of parts joined by '#'.
func (p Partition) Key(parts ...string) Key {
	return Key{pk: p.pk, sk: strings.Join(parts, "#")}
}

// String is the raw partition key, for the implementations and for logs.
func (p Partition) String() string { return p.pk }

// Key names one row. It is comparable, and only this package can build it.
type Key struct{ pk, sk string }

// PK and SK are the raw keys, for the implementations.
func (k Key) PK() string { return k.pk }
func (k Key) SK() string { return k.sk }

// Partition is the partition that the row is in.
func (k Key) Partition() Partition { return Partition{k.pk} }

// RawKey is for implementations that read keys back from their medium.
func RawKey(pk, sk string) Key { return Key{pk, sk} }

// clean escapes an identifier for its key segment. Different identifiers stay different,
// so '%' is escaped too.
func clean(id string) string {
	if strings.ContainsAny(id, "#%\x00") {
		return strings.NewReplacer("#", "%23", "%", "%25", "\x00", "%00").Replace(id)
	}
	return id
}
