// Package hostpin decides whether the secrets of a resource may be sent to the addresses that
// the resource has after a change. Every resource that has both, of any kind, calls Check
// before it is stored. The package must not depend on kinds of resources.
package hostpin

import (
	"fmt"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// Address is a field that decides which host is called: a URL, or a part of one.
type Address struct {
	Field    string // name in errors
	Was, Now string // values before and after the change; Was is empty for new resources
	// Open reports that the value can name any host. Other values, such as a region, choose
	// among the hosts of one vendor.
	Open bool
	// Secrets are the fields of the secrets that are sent there, or the fields that contain
	// them; nil means all of them.
	Secrets []string
}

// Changed reports whether the change sends requests to another host.
func (a *Address) Changed() bool {
	return strings.TrimRight(a.Was, "/") != strings.TrimRight(a.Now, "/")
}

func (a *Address) receives(secret string) bool {
	return a.Secrets == nil || slices.ContainsFunc(a.Secrets, func(s string) bool { return secret == s || strings.HasPrefix(secret, s+".") })
}

// Mapping is a secret that is read from a secret manager through a secret reference.
type Mapping struct {
	Field   string // name in errors, such as secret_mappings[0]
	Target  string // the field that the secret fills
	Changed bool   // the mapping is new, or differs from the stored one
	// Key is the field of the secret that the mapping chooses, and ReferenceKey the one that
	// the reference names. Empty means the entire secret, or for Key the reference's choice.
	Key, ReferenceKey string
}

// Caller is what the author of a change may do with secret references.
type Caller struct {
	Uses  bool // may map secret references that are open to the workspace
	Reads bool // may read secret references, so that they may also decide where secrets go
}

// Scopes of Caller.
const (
	ScopeUse  = "secret_references.use"
	ScopeRead = "secret_references.read"
)

// Change is a change of a resource that has secrets and addresses.
type Change struct {
	Addresses []Address
	// Retained are the fields of the secrets that were stored by an earlier call and that this call
	// neither sends again nor removes. New resources have none.
	Retained []string
	Mappings []Mapping
	By       Caller
}

// Check returns a 400 that names the addresses that stored secrets would be sent to and the
// mappings that the caller may not make, a 403 if the caller may not map secret references at
// all, or nil. A stored secret is sent only to the address with which it was saved: a caller
// that changes the address must send the secret again, which proves that it has the secret. A
// mapped secret is sent only where a caller with read access to its reference directs it, or to
// the vendor that the field belongs to.
func (ch *Change) Check() error {
	if !ch.By.Uses && !ch.By.Reads && slices.ContainsFunc(ch.Mappings, func(m Mapping) bool { return m.Changed }) {
		return fault.Newf(fault.NotAllowed, "secret_mappings", "A new or changed mapping of a secret reference requires the scope %s or %s", ScopeUse, ScopeRead)
	}
	if refused := fault.Invalids(ch.details()); refused != nil {
		return refused
	}
	return nil
}

func (ch *Change) details() (bad []fault.Detail) {
	for i := range ch.Addresses {
		a := &ch.Addresses[i]
		if !a.Changed() {
			continue
		}
		var retained []string
		for _, name := range ch.Retained {
			if a.receives(name) {
				retained = append(retained, name)
			}
		}
		if len(retained) > 0 {
			slices.Sort(retained)
			list := strings.Join(slices.Compact(retained), ", ")
			bad = append(bad, fault.Detail{Field: a.Field, Message: fmt.Sprintf("decides to which host the stored %s is sent; to change it, send %s again in the same call, or null to remove it", list, list)})
		}
	}
	if ch.By.Reads {
		return bad
	}
	for i := range ch.Mappings {
		m := &ch.Mappings[i]
		if m.Changed && Chooses(m.Key, m.ReferenceKey) {
			bad = append(bad, fault.Detail{Field: m.Field + ".secret_key", Message: "must be the field of the secret that its reference names; omit it, or use a key with the scope " + ScopeRead})
		}
		if a := ch.openAddress(m); a != "" {
			bad = append(bad, fault.Detail{Field: a, Message: fmt.Sprintf("decides where the secret of %s is sent, which requires the scope %s", m.Field, ScopeRead)})
		}
	}
	return bad
}

// openAddress returns the address field for which the caller may not vouch: one that can
// name any host, if the change sets it or maps the secret, or any that the change moves.
// Empty means none.
func (ch *Change) openAddress(m *Mapping) string {
	for i := range ch.Addresses {
		a := &ch.Addresses[i]
		if a.receives(m.Target) && (a.Changed() && !m.Changed || a.Open && a.Now != "" && (m.Changed || a.Changed())) {
			return a.Field
		}
	}
	return ""
}

// Chooses reports whether a mapping reads another part of a secret than the reference names. A
// reference without a key names the entire secret, so each field is a part of it.
func Chooses(key, referenceKey string) bool {
	return key != "" && referenceKey != "" && key != referenceKey
}
