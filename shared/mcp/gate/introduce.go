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

// maxIntroduction bounds what a server is told of a user, in bytes.
const maxIntroduction = 8 << 10

// introduceUser tells the server who calls, as its integration says. The client's own value
// of that header is always removed.
func introduceUser(v *visit, up *mcp.Upstream, f *mcp.IdentityForwarding) error {
	if f == nil {
		return nil
	}
	h := up.Headers
	h.Del(f.Header())
	up.Client = slices.DeleteFunc(up.Client, func(name string) bool { return strings.EqualFold(name, f.Header()) })
	switch f.Method {
	case mcp.IdentityBearer:
		raw := ofProvider(v)
		if raw == "" {
			return fault.New(fault.Unauthorized, "authorization", "This MCP server is told who calls by the token of the organisation's identity provider: send one that it signed")
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
		value := ascii(string(raw))
		if len(value) > maxIntroduction {
			return tooLarge()
		}
		h.Set(f.Header(), value)
		return nil
	case mcp.IdentitySigned:
		return signed(v, up, f)
	}
	return fault.New(fault.NotAllowed, "", "The integration of this MCP server forwards identities in a way that this gateway does not have")
}

// ownClaims describe a token itself (issuer, times and the like). They are not copied from
// another token, where they describe that one.
var ownClaims = []string{"iss", "iat", "exp", "nbf", "jti"}

// signed tells it by a token of the gateway's own.
func signed(v *visit, up *mcp.Upstream, f *mcp.IdentityForwarding) error {
	claims, err := callerClaims(v, f.Claims())
	if err != nil {
		return err
	}
	for _, name := range ownClaims {
		delete(claims, name)
	}
	if delete(claims, "aud"); slices.Contains(f.Claims(), "aud") {
		claims["aud"] = up.URL
	}
	token, err := v.host.minter.Token(v.call.Context, v.call.Caller.Scope.Org+"/"+principal(v), claims, f.Lasts())
	if err != nil {
		return err
	}
	if len(token) > maxIntroduction {
		return tooLarge()
	}
	if strings.EqualFold(f.Header(), "Authorization") {
		token = scheme + token
	}
	up.Headers.Set(f.Header(), token)
	return nil
}

func tooLarge() *fault.Fault {
	return fault.Newf(fault.NotAllowed, "", "The claims of this user have more than %d bytes, which the MCP server cannot be told", maxIntroduction)
}

// ofProvider is the token of the organisation's identity provider that came with the
// request; "" where there is none. A key or token of the gateway is never one.
func ofProvider(v *visit) string {
	if v.proof != nil {
		return v.proof.raw
	}
	raw, _, err := identity.Token(v.call.Request.Header)
	if err != nil || v.call.Caller.Type != identity.SignedToken || isGatewayCredential(v, raw) {
		return ""
	}
	return raw
}

// callerClaims are what is known of the caller under the names that are asked for. Organisation
// and workspace are the gateway's word; the rest comes from a token that was checked, if
// there is one.
func callerClaims(v *visit, names []string) (map[string]any, error) {
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
	if v.proof != nil {
		for name, value := range v.proof.token.Claims {
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

// ascii writes JSON without what headers cannot carry everywhere.
func ascii(text string) string {
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
