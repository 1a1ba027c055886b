package mcp

import (
	"cmp"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/tenant/upstream"
)

// Ways by which a server learns who calls.
const (
	IdentityClaims = "claims_header"
	IdentityBearer = "bearer"
	IdentitySigned = "jwt_header"
)

// Header is where the server is told who calls.
func (f *IdentityForwarding) Header() string {
	switch f.Method {
	case IdentityBearer:
		return cmp.Or(f.HeaderName, "Authorization")
	case IdentitySigned:
		return cmp.Or(f.HeaderName, "X-User-JWT")
	}
	return cmp.Or(f.HeaderName, "X-User-Claims")
}

// Claims are the names of what the server is told.
func (f *IdentityForwarding) Claims() []string {
	if len(f.IncludeClaims) > 0 {
		return f.IncludeClaims
	}
	return []string{"sub", "email", "username", "user_id", "workspace_id", "organisation_id", "scope", "client_id"}
}

// Lasts is how long a token is good that the gateway signs.
func (f *IdentityForwarding) Lasts() time.Duration {
	return time.Duration(cmp.Or(f.Expiry, expiry)) * time.Second
}

// expiry is that of Expiry where none is set.
const expiry = 300

// check gives what the members do not say by their bounds.
func (f *IdentityForwarding) check(at string) (bad []fault.Detail) {
	if f.HeaderName != "" && (!upstream.HeaderName(f.HeaderName) || upstream.Ours(strings.ToLower(f.HeaderName))) {
		bad = append(bad, fault.Detail{Field: at + ".header_name", Message: "is not a header that can be sent"})
	}
	return bad
}
