package jwt

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/wire"
)

// Limits of a token.
const (
	maxToken  = 8 << 10 // bytes
	maxDepth  = 8       // of the JSON
	maxScopes = 500
	maxPairs  = 64 // of default metadata
)

// Is reports whether a credential has the form of a token: three parts of base64url, of which
// the first is a JSON object.
func Is(credential string) bool {
	if len(credential) < 5 || strings.Count(credential, ".") != 2 {
		return false
	}
	for i := range len(credential) {
		switch c := credential[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '=':
		default:
			return false
		}
	}
	var first [3]byte
	n, _ := base64.RawURLEncoding.Decode(first[:], []byte(credential[:4]))
	return n > 0 && first[0] == '{'
}

// header is the token's own description of its signature.
type header struct {
	Alg, Typ, Kid string
}

// keyBearers are header parameters that contain a key, the address of one, or verification
// rules. They would let the issuer of a token choose how it is verified.
var keyBearers = []string{"jku", "jwk", "x5u", "x5c", "crit", "b64", "zip", "enc"}

// readHeader parses the first part of a token strictly.
func readHeader(part string) (header, error) {
	raw, err := object(part, "header")
	if err != nil {
		return header{}, err
	}
	var h header
	for name, to := range map[string]*string{"alg": &h.Alg, "typ": &h.Typ, "kid": &h.Kid} {
		if err := json.Unmarshal(raw[name], to); raw[name] != nil && err != nil {
			return header{}, invalid("the header's %s must be a string", name)
		}
	}
	for _, name := range keyBearers {
		if _, there := raw[name]; there {
			return header{}, invalid("the header may not have %s", name)
		}
	}
	switch {
	case h.Alg != "RS256":
		return header{}, invalid("the algorithm must be RS256")
	case !strings.EqualFold(h.Typ, "JWT"):
		return header{}, invalid("the header's typ must be JWT")
	case h.Kid == "" || len(h.Kid) > 255:
		return header{}, invalid("the header's kid must name the signing key, with 1 to 255 bytes")
	}
	return h, nil
}

// object decodes a part of a token: a JSON object without duplicate keys.
func object(part, what string) (map[string]json.RawMessage, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return nil, invalid("the %s is not base64url without padding", what)
	}
	var out map[string]json.RawMessage
	if wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, &out) != nil || out == nil {
		return nil, invalid("the %s is not a JSON object with every key once, at most %d levels deep", what, maxDepth)
	}
	return out, nil
}

// claims are the supported claims of a token.
type claims struct {
	golangjwt.RegisteredClaims
	Organisation, Workspace string
	Scopes                  []string // normal spelling
	User                    string   // for logs: email address, subject or uid
	Email                   string   // may be the address of a platform user
	Defaults                identity.Defaults
	Rates                   []ledger.RateLimit
	Budgets                 []ledger.UsageLimit
}

// either returns the first existing of two claims; if both exist, they must be equal.
func either(raw map[string]json.RawMessage, names ...string) (string, error) {
	var found string
	for _, name := range names {
		if raw[name] == nil || string(raw[name]) == "null" {
			continue
		}
		var v string
		if err := json.Unmarshal(raw[name], &v); err != nil || v == "" || len(v) > 255 {
			return "", invalid("the claim %s must be a string of 1 to 255 bytes", name)
		}
		if found != "" && found != v {
			return "", invalid("the claims %s contradict each other", strings.Join(names, " and "))
		}
		found = v
	}
	return found, nil
}

// organisationOf returns the organisation that a payload names.
func organisationOf(part string) (string, error) {
	raw, err := object(part, "payload")
	if err != nil {
		return "", err
	}
	id, err := either(raw, "gateway_oid", "organisation_id")
	if err == nil && id == "" {
		err = invalid("the claim gateway_oid or organisation_id is missing")
	}
	return id, err
}

// readClaims parses the second part of a token. Before the signature is verified, its content
// is used only to find the keys.
func readClaims(part string) (*claims, error) {
	raw, err := object(part, "payload")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"exp", "nbf", "iat"} {
		if v := raw[name]; len(v) > 0 && v[0] != '-' && (v[0] < '0' || v[0] > '9') {
			return nil, invalid("the claim %s must be a number", name)
		}
	}
	c := &claims{}
	if c.Organisation, err = organisationOf(part); err != nil {
		return nil, err
	}
	if c.Workspace, err = either(raw, "gateway_workspace", "workspace_slug"); err != nil {
		return nil, err
	}
	if c.Workspace == "" {
		return nil, invalid("the claim gateway_workspace or workspace_slug is missing")
	}
	if err := c.readScopes(raw); err != nil {
		return nil, err
	}
	for _, name := range []string{"email_id", "sub", "uid"} {
		var v string
		if json.Unmarshal(raw[name], &v) != nil || v == "" {
			continue
		}
		if len(v) > 255 {
			return nil, invalid("the claim %s must have at most 255 bytes", name)
		}
		if c.User == "" {
			c.User = v
		}
		if name == "email_id" || c.Email == "" && strings.Contains(v, "@") {
			c.Email = v
		}
	}
	if err := c.readDefaults(raw["defaults"]); err != nil {
		return nil, err
	}
	return c, c.readLimits(raw)
}

// readScopes accepts scopes as one string, separated by spaces or commas, or as an array. It
// ignores scopes that a token cannot hold.
func (c *claims) readScopes(raw map[string]json.RawMessage) error {
	var named []string
	for _, name := range []string{"scope", "scopes"} {
		if raw[name] == nil || string(raw[name]) == "null" {
			continue
		}
		var line string
		var many []string
		switch {
		case json.Unmarshal(raw[name], &line) == nil:
			many = strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' })
		case json.Unmarshal(raw[name], &many) != nil:
			return invalid("the claim %s must be a string, or an array of strings", name)
		}
		named = append(named, many...)
	}
	if len(named) > maxScopes {
		return invalid("the claim scope names %d scopes; at most %d are allowed", len(named), maxScopes)
	}
	for _, s := range named {
		if s = identity.NormalScope(s); identity.SignedToken.Grantable(s) && !slices.Contains(c.Scopes, s) {
			c.Scopes = append(c.Scopes, s)
		}
	}
	return nil
}

func (c *claims) readDefaults(raw json.RawMessage) error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	var d struct {
		ConfigID *string           `json:"config_id"`
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &d); err != nil || len(d.Metadata) > maxPairs || d.ConfigID != nil && len(*d.ConfigID) > 255 {
		return invalid("the claim defaults must be an object with config_id, of at most 255 bytes, and metadata, an object of at most %d strings", maxPairs)
	}
	for k, v := range d.Metadata {
		if len(k) > 128 || len(v) > 128 {
			return invalid("the claim defaults.metadata must have keys and values of at most 128 bytes")
		}
	}
	c.Defaults.Metadata = d.Metadata
	if d.ConfigID != nil {
		c.Defaults.ConfigID = *d.ConfigID
	}
	return nil
}

// readLimits reads the limits of this token, in the form of key limits.
func (c *claims) readLimits(raw map[string]json.RawMessage) error {
	var details []fault.Detail
	if v := raw["usage_limits"]; v != nil {
		c.Budgets, details = ledger.InToken.UsageLimits(withoutState(v), "usage_limits")
	}
	if v := raw["rate_limits"]; v != nil && details == nil {
		c.Rates, details = ledger.InToken.RateLimits(withoutState(v), "rate_limits")
	}
	if len(details) > 0 {
		return invalid("the claim %s %s", details[0].Field, details[0].Message)
	}
	return nil
}

// withoutState removes the id and the status of a limit.
func withoutState(raw json.RawMessage) json.RawMessage {
	var limits []map[string]json.RawMessage
	if json.Unmarshal(raw, &limits) != nil {
		return raw
	}
	for _, l := range limits {
		delete(l, "id")
		delete(l, "status")
	}
	out, _ := json.Marshal(limits) // decoded before
	return out
}

// invalid returns the fault for an invalid token.
func invalid(format string, args ...any) *fault.Fault {
	return fault.Newf(fault.Unauthorized, "x-gateway-api-key", "The token is not valid: "+format, args...)
}
