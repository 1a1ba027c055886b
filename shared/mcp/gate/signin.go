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

// signInRequest is the name of the input request for a sign-in.
const signInRequest = "gateway-sign-in"

// account identifies the caller's account at the server.
func account(v *requestState) oauthclient.UserKey {
	of := v.facts.Server.Record
	return oauthclient.UserKey{Scope: of.Scope, Server: of.ID, User: v.call.Caller.UserID}
}

const scheme = "Bearer "

// actingUser returns the user for whom the caller acts, or "". A key that another user created,
// and whose secret its user did not collect, acts for no user.
func actingUser(v *requestState) (string, error) {
	if v.call.Caller.UserID == "" {
		return "", nil
	}
	if _, personal, err := identity.Granted(v.call.Context, v.call.View, v.call.Caller); err != nil || !personal {
		return "", err
	}
	return v.call.Caller.UserID, nil
}

// addUserToken adds the user's token for the server.
func addUserToken(v *requestState, up *mcp.Upstream) error {
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

// renewUserToken marks the user's token for renewal after the server rejected it.
func renewUserToken(v *requestState, up *mcp.Upstream) {
	if token, ok := strings.CutPrefix(up.Headers.Get("Authorization"), scheme); ok {
		v.host.tokens.MarkRejected(account(v), token)
	}
}

// needsMoreScopes reports whether a server requires scopes that the user was not asked for. The
// next sign-in requests them. Scopes that were requested and not granted are not requested
// again.
func needsMoreScopes(v *requestState, x *mcp.Exchange) bool {
	if x == nil || x.Status != http.StatusForbidden || v.facts.Integration.AuthType != mcp.AuthOAuth {
		return false
	}
	wanted := oauthclient.Insufficient(x.Challenges)
	had := v.host.tokens.RequestedScopes(account(v))
	v.scopes = oauthclient.Union(had, wanted)
	return len(v.scopes) > len(had)
}

// signInAt returns the address where the caller's user signs in.
func signInAt(v *requestState) (string, error) {
	who := account(v)
	link := oauthclient.Link{Org: who.Scope.Org, Workspace: who.Scope.Workspace, Server: who.Server, User: who.User, Scopes: v.scopes}
	return link.Address(v.call.Context, v.call.Sealer, oauthserver.Issuer(v.host.Public, v.call.Request), v.call.Now())
}

// signIn asks the client to have its user sign in: as an elicitation if the client supports it,
// otherwise as an error with the address.
func signIn(v *requestState) {
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
	v.record.Decision = "sign-in"
	name := v.facts.Server.Record.Name
	elicitation := map[string]string{"mode": "url", "url": address, "elicitationId": rand.Text(), "message": "Sign in at " + name + " to continue"}
	switch {
	case v.req == nil || !v.req.IsRequest() || !v.urlElicitation:
		sendSignInRequired(v, name, address)
	case v.req.Kind != protocolversion.Stateless:
		data, _ := json.Marshal(map[string]any{"elicitations": []any{elicitation}}) // only strings
		sendError(v, &mcp.Error{Code: protocolversion.CodeSignIn, Message: "the user must sign in at the server first", Data: data})
	case inputMethods[v.req.Method]:
		raw, _ := json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": map[string]any{signInRequest: map[string]any{"method": "elicitation/create", "params": elicitation}}}) // only strings
		sendResult(v, raw)
	default:
		sendSignInRequired(v, name, address)
	}
}

// sendSignInRequired rejects a request and names the sign-in address, which is not recorded.
func sendSignInRequired(v *requestState, name, address string) {
	f := fault.New(fault.Unauthorized, "", "The user must sign in at this MCP server first")
	if v.req == nil {
		v.req = &protocolversion.Request{}
	}
	v.record.Code = http.StatusUnauthorized
	raw, _ := json.Marshal(map[string]any{ // only strings
		"code": http.StatusUnauthorized, "message": "Sign in at " + name + " first: open " + address,
		"data": map[string]string{"error": "sign_in_required", "authorization_url": address, "trace_id": v.call.TraceID},
	})
	v.call.Pipeline.Header().Set("WWW-Authenticate", `Bearer authorization_uri="`+address+`"`)
	sendLast(v, http.StatusUnauthorized, response(v, "error", raw), f)
}

// withoutSignIn removes the client's response to the sign-in, which is not meant for the
// server.
func withoutSignIn(params map[string]json.RawMessage) {
	if params["inputResponses"] == nil {
		return
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(params["inputResponses"], &all) != nil || all[signInRequest] == nil {
		return
	}
	delete(all, signInRequest)
	if delete(params, "inputResponses"); len(all) > 0 {
		params["inputResponses"], _ = json.Marshal(all) // decoded from JSON
	}
}

// syncedHello returns the synchronized self-description of a server at which the user has not
// signed in.
func syncedHello(v *requestState) map[string]json.RawMessage {
	can := v.facts.Integration.Synced.Capabilities
	if len(can) == 0 {
		can = json.RawMessage(`{"tools":{}}`)
	}
	return map[string]json.RawMessage{"capabilities": can}
}
