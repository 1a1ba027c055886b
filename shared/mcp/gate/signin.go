package gate

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/mcp/oauthclient"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/mcp/protocolversion"
)

// asking is the name by which a client is asked to have its user sign in.
const asking = "gateway-sign-in"

// account is the caller's user at the server.
func account(v *visit) oauthclient.Place {
	of := v.facts.Server.Record
	return oauthclient.Place{Scope: of.Scope, Server: of.ID, User: v.call.Caller.UserID}
}

const scheme = "Bearer "

// actingUser returns the user whom the caller acts for; "" if there is none. A key that somebody
// else created, and whose secret its user did not collect, acts for nobody but itself.
func actingUser(v *visit) (string, error) {
	if v.call.Caller.UserID == "" {
		return "", nil
	}
	if _, personal, err := identity.Granted(v.call.Context, v.call.View, v.call.Caller); err != nil || !personal {
		return "", err
	}
	return v.call.Caller.UserID, nil
}

// asUser adds the token that the caller's user has at the server.
func asUser(v *visit, up *mcp.Upstream) error {
	if user, err := actingUser(v); err != nil || user == "" {
		if err == nil {
			err = mcp.ErrSignIn
		}
		return err
	}
	token, err := v.host.tokens.Access(v.call.Context, v.call.View, account(v), up.URL)
	if err == nil {
		up.Headers.Set("Authorization", scheme+token)
	}
	return err
}

// doubt has the user's token renewed, which the server refuses.
func doubt(v *visit, up *mcp.Upstream) {
	if token, ok := strings.CutPrefix(up.Headers.Get("Authorization"), scheme); ok {
		v.host.tokens.Doubt(account(v), token)
	}
}

// wantsMore tells whether a server refuses its user for scopes that the user was never
// asked for, which the next sign-in asks for too. What was asked for once and not given
// is not asked for again.
func wantsMore(v *visit, x *mcp.Exchange) bool {
	if x == nil || x.Status != http.StatusForbidden || v.facts.Integration.AuthType != mcp.AuthOAuth {
		return false
	}
	wanted := oauthclient.Insufficient(x.Challenges)
	had := v.host.tokens.Asked(account(v))
	v.scopes = oauthclient.Union(had, wanted)
	return len(v.scopes) > len(had)
}

// signInAt is where the caller's user signs in at the server.
func signInAt(v *visit) (string, error) {
	who := account(v)
	link := oauthclient.Link{Org: who.Scope.Org, Workspace: who.Scope.Workspace, Server: who.Server, User: who.User, Scopes: v.scopes}
	return link.Address(v.call.Context, v.call.Sealer, oauthserver.Issuer(v.host.Public, v.call.Request), v.call.Now())
}

// signIn tells the client where its user signs in at the server: as the protocol says
// where the client can send people to an address, else as a refusal that names it.
func signIn(v *visit) {
	user, err := actingUser(v)
	if err != nil {
		sendFault(v, fault.From(err))
		return
	}
	if user == "" {
		sendFault(v, fault.New(fault.NotAllowed, "x-gateway-api-key", "Each user signs in at this MCP server. Call it with a key that its user created, collected or rotated, or sign in to the gateway"))
		return
	}
	address, err := signInAt(v)
	if err != nil {
		sendFault(v, fault.From(err))
		return
	}
	v.note.Decision = "sign-in"
	name := v.facts.Server.Record.Name
	ask := map[string]string{"mode": "url", "url": address, "elicitationId": rand.Text(), "message": "Sign in at " + name + " to go on"}
	switch {
	case v.req == nil || !v.req.IsRequest() || !v.opens:
		unsigned(v, name, address)
	case v.req.Era != protocolversion.Stateless:
		data, _ := json.Marshal(map[string]any{"elicitations": []any{ask}}) // texts
		wrong(v, &mcp.Error{Code: protocolversion.CodeSignIn, Message: "the user has to sign in at the server first", Data: data})
	case asks[v.req.Method]:
		raw, _ := json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": map[string]any{asking: map[string]any{"method": "elicitation/create", "params": ask}}}) // texts
		sendResult(v, raw)
	default:
		unsigned(v, name, address)
	}
}

// unsigned refuses a request and says where the user signs in. The record of it has no
// address.
func unsigned(v *visit, name, address string) {
	f := fault.New(fault.Unauthorized, "", "The user has to sign in at this MCP server first")
	if v.req == nil {
		v.req = &protocolversion.Request{}
	}
	v.note.Code = http.StatusUnauthorized
	raw, _ := json.Marshal(map[string]any{ // texts
		"code": http.StatusUnauthorized, "message": "Sign in at " + name + " first: open " + address,
		"data": map[string]string{"error": "sign_in_required", "authorization_url": address, "trace_id": v.call.TraceID},
	})
	v.call.Header().Set("WWW-Authenticate", `Bearer authorization_uri="`+address+`"`)
	sendLast(v, http.StatusUnauthorized, message(v, "error", raw), f)
}

// withoutSignIn takes away what a client brings back of the sign-in: it is not the
// server's.
func withoutSignIn(params map[string]json.RawMessage) {
	if params["inputResponses"] == nil {
		return
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(params["inputResponses"], &all) != nil || all[asking] == nil {
		return
	}
	delete(all, asking)
	if delete(params, "inputResponses"); len(all) > 0 {
		params["inputResponses"], _ = json.Marshal(all) // raw members that were JSON
	}
}

// unmet is what is known of a server that the user has not signed in at yet.
func unmet(v *visit) map[string]json.RawMessage {
	can := v.facts.Integration.Synced.Capabilities
	if len(can) == 0 {
		can = json.RawMessage(`{"tools":{}}`)
	}
	return map[string]json.RawMessage{"capabilities": can}
}
