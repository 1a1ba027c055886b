package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/mcp"
	"gateway/shared/resource"
)

// maxIdentity is the size limit of forwarded identity, in bytes.
const maxIdentity = 8 << 10

// forwardIdentity sends the identity of the caller to the server as the integration configures.
// It always removes the client's value of that header.
func forwardIdentity(v *requestState, up *mcp.Upstream, f *mcp.IdentityForwarding) error {
	if f == nil {
		return nil
	}
	h := up.Headers
	h.Del(f.Header())
	up.Client = slices.DeleteFunc(up.Client, func(name string) bool { return strings.EqualFold(name, f.Header()) })
	switch f.Method {
	case mcp.IdentityBearer:
		raw := providerToken(v)
		if raw == "" {
			return fault.New(fault.Unauthorized, "authorization", "This MCP server requires a token of the organization's identity provider: send one")
		}
		h.Set(f.Header(), scheme+raw)
		return nil
	case mcp.IdentityClaims:
		claims, err := callerClaims(v, f.Claims())
		if err != nil {
			return err
		}
		raw, err := json.Marshal(claims)
		if err != nil {
			return err
		}
		value := escapeASCII(string(raw))
		if len(value) > maxIdentity {
			return tooLarge()
		}
		h.Set(f.Header(), value)
		return nil
	case mcp.IdentitySigned:
		return setSignedIdentity(v, up, f)
	}
	return fault.New(fault.NotAllowed, "", "The integration of this MCP server has an unsupported user_identity_forwarding.method")
}

// tokenClaims describe a token itself and are not copied from another token.
var tokenClaims = []string{"iss", "iat", "exp", "nbf", "jti"}

// setSignedIdentity sends the identity as a token that the gateway signs.
func setSignedIdentity(v *requestState, up *mcp.Upstream, f *mcp.IdentityForwarding) error {
	claims, err := callerClaims(v, f.Claims())
	if err != nil {
		return err
	}
	for _, name := range tokenClaims {
		delete(claims, name)
	}
	if delete(claims, "aud"); slices.Contains(f.Claims(), "aud") {
		claims["aud"] = up.URL
	}
	token, err := v.host.minter.Token(v.call.Context, v.call.Caller.Scope.Org+"/"+principal(v), claims, f.Lifetime())
	if err != nil {
		return err
	}
	if len(token) > maxIdentity {
		return tooLarge()
	}
	if strings.EqualFold(f.Header(), "Authorization") {
		token = scheme + token
	}
	up.Headers.Set(f.Header(), token)
	return nil
}

func tooLarge() *fault.Fault {
	return fault.Newf(fault.NotAllowed, "", "The claims of this user have more than %d bytes and cannot be forwarded to the MCP server", maxIdentity)
}

// providerToken returns the token of the organization's identity provider in the request, or
// "". It never returns a key or token of the gateway.
func providerToken(v *requestState) string {
	if v.token != nil {
		return v.token.raw
	}
	raw, _, err := identity.Token(v.call.Request.Header)
	if err != nil || v.call.Caller.Type != identity.SignedToken || isGatewayCredential(v, raw) {
		return ""
	}
	return raw
}

// callerClaims returns the requested claims of the caller. Organization and workspace come from
// the gateway; the others come from a verified token if there is one.
func callerClaims(v *requestState, names []string) (map[string]any, error) {
	who := v.call.Caller
	user, err := actingUser(v)
	if err != nil {
		return nil, err
	}
	known := map[string]any{"sub": who.KeyID, "client_id": who.KeyID, "scope": strings.Join(who.Scopes.Sorted(), " ")}
	if who.EndUser != "" {
		known["sub"], known["username"] = who.EndUser, who.EndUser
		if strings.Contains(who.EndUser, "@") {
			known["email"] = who.EndUser
		}
	}
	if user != "" {
		known["sub"] = user
		u, ok, err := resource.Load(v.call.Context, v.call.View, who.Scope.Organisation(), membership.KindUser, user, membership.DecodeUser)
		if err != nil {
			return nil, err
		}
		if ok {
			known["email"], known["username"] = u.Email, u.Email
		}
	}
	if v.token != nil {
		for name, value := range v.token.token.Claims {
			known[name] = value
		}
	}
	delete(known, "user_id")
	if user != "" {
		known["user_id"] = user
	}
	known["workspace_id"], known["organisation_id"] = who.Scope.Workspace, who.Scope.Org
	out := make(map[string]any, len(names))
	for _, name := range names {
		if value, ok := known[name]; ok && value != nil {
			out[name] = value
		}
	}
	return out, nil
}

// escapeASCII escapes characters of JSON that headers do not support.
func escapeASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
