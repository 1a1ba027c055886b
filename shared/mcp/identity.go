package mcp

import (
	"cmp"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/tenant/upstream"
)

// Values of IdentityForwarding.Method.
const (
	IdentityClaims = "claims_header"
	IdentityBearer = "bearer"
	IdentitySigned = "jwt_header"
)

// Header returns the header that carries the identity.
func (f *IdentityForwarding) Header() string {
	switch f.Method {
	case IdentityBearer:
		return cmp.Or(f.HeaderName, "Authorization")
	case IdentitySigned:
		return cmp.Or(f.HeaderName, "X-User-JWT")
	}
	return cmp.Or(f.HeaderName, "X-User-Claims")
}

// Claims returns the names of the claims to forward.
func (f *IdentityForwarding) Claims() []string {
	if len(f.IncludeClaims) > 0 {
		return f.IncludeClaims
	}
	return []string{"sub", "email", "username", "user_id", "workspace_id", "organisation_id", "scope", "client_id"}
}

// Lifetime returns how long a signed token is valid.
func (f *IdentityForwarding) Lifetime() time.Duration {
	return time.Duration(cmp.Or(f.Expiry, defaultExpiry)) * time.Second
}

// defaultExpiry is in seconds.
const defaultExpiry = 300

// check returns the faults that the limits in the struct tags do not cover.
func (f *IdentityForwarding) check(at string) (bad []fault.Detail) {
	if f.HeaderName != "" && (!upstream.HeaderName(f.HeaderName) || upstream.Ours(strings.ToLower(f.HeaderName))) {
		bad = append(bad, fault.Detail{Field: at + ".header_name", Message: "is not a valid header name, or the header is reserved"})
	}
	return bad
}
