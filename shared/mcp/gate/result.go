package gate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/seal"
	"gateway/shared/tenant/upstream"
)

// finish sends a result in the form of the client's protocol version.
func finish(v *requestState, w *bridge, result json.RawMessage) error {
	modern := v.req.Kind == protocolversion.Stateless
	if modern && w.kind != toStateless {
		sendResult(v, addStatelessFields(result, v.req.Method))
		return nil
	}
	if w.kind != toStateless {
		sendResult(v, result)
		return nil
	}
	members := mcp.Fields(result)
	if members == nil {
		return upstream.Fail(http.StatusOK, "the server's result is not an object")
	}
	var kind string
	_ = mcp.ParseString(members["resultType"], &kind) // an unexpected type counts as empty
	switch {
	case kind == inputRequired && inputMethods[v.req.Method] && modern:
		return sendInputRequired(v, members)
	case kind != "" && kind != "complete":
		return upstream.Fail(http.StatusOK, "the server's result has an unexpected resultType")
	}
	if modern && kind == "complete" && v.req.Method != "resources/read" {
		sendResult(v, result)
		return nil
	}
	age, _ := cacheAge(members)
	for _, name := range statelessFields {
		delete(members, name)
	}
	raw := mcp.AppendFields(nil, members)
	if modern {
		raw = raw[:len(raw)-1]
		if len(members) > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, `"resultType":"complete"`...)
		if v.req.Method == "resources/read" {
			raw = appendAge(raw, age)
		}
		raw = append(raw, '}')
	}
	sendResult(v, raw)
	return nil
}

// statelessFields are the result fields that only the stateless version has.
var statelessFields = [...]string{"resultType", "ttlMs", "cacheScope"}

// addStatelessFields converts a result of a server with sessions for a client without. It first
// removes fields that only the gateway may set.
func addStatelessFields(result json.RawMessage, method string) json.RawMessage {
	for _, name := range append(statelessFields[:], `\u`) { // names may contain escapes
		if bytes.Contains(result, []byte(name)) {
			members := mcp.Fields(result)
			for _, name := range statelessFields {
				delete(members, name)
			}
			result = mcp.AppendFields(nil, members)
			break
		}
	}
	out := append(make([]byte, 0, len(result)+64), `{"resultType":"complete"`...)
	if method == "resources/read" {
		out = appendAge(out, 0)
	}
	if rest := result[1:]; len(bytes.TrimSpace(rest)) > 1 {
		out = append(out, ',')
	}
	return append(out, result[1:]...)
}

// inputMethods are the methods with results that may request input.
var inputMethods = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

// inputRequired is the type of such results.
const inputRequired = "input_required"

// sendInputRequired forwards a request for input, with the server's state sealed.
func sendInputRequired(v *requestState, members map[string]json.RawMessage) error {
	s := state{Digest: digest(v), Expires: v.call.Now().Add(stateLife).Unix()}
	if raw := members["requestState"]; raw != nil {
		if json.Unmarshal(raw, &s.State) != nil {
			return upstream.Fail(http.StatusOK, "the server's requestState is not a string")
		}
		s.HasState = true
		text, err := sealValue(v, binding(v, sealState), &s)
		if err != nil {
			return err
		}
		members["requestState"], _ = json.Marshal(text) // a string
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	sendResult(v, raw)
	return nil
}

// sendURLInput requests a client without a session to open the addresses that a server with
// sessions requires.
func sendURLInput(v *requestState, refused *mcp.Error) error {
	var data struct {
		Elicitations []map[string]json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &data) != nil || len(data.Elicitations) == 0 || !inputMethods[v.req.Method] {
		return upstream.Fail(http.StatusOK, "the server requires the user to open an address, but names none")
	}
	if !v.urlElicitation {
		reject(v, &protocolversion.Rejection{Status: http.StatusBadRequest, Error: mcp.Error{
			Code: protocolversion.CodeCapabilities, Message: "the user must open an address first, and the client does not declare elicitation.url", Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`),
		}})
		return nil
	}
	requests := map[string]any{}
	for i, one := range data.Elicitations {
		if one == nil || one["url"] == nil {
			return upstream.Fail(http.StatusOK, "the server requires the user to open an address, but names none")
		}
		one["mode"] = json.RawMessage(`"url"`)
		requests["open-"+strconv.Itoa(i+1)] = map[string]any{"method": "elicitation/create", "params": one}
	}
	sealed, err := sealValue(v, binding(v, sealState), &state{Digest: digest(v), Expires: v.call.Now().Add(stateLife).Unix()})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{"resultType": inputRequired, "inputRequests": requests, "requestState": sealed})
	if err != nil {
		return err
	}
	sendResult(v, raw)
	return nil
}

// Sealed values and their lifetimes.
const (
	sealTable   = "mcp"
	sealSession = "session"
	sealState   = "state"

	sessionLife = 24 * time.Hour
	stateLife   = time.Hour
)

// session is the content of a client's session id.
type session struct {
	Upstream        string          `json:"u,omitempty"`  // the server's session id
	UpstreamVersion string          `json:"uv,omitempty"` // version at the server; empty if the server has no such session
	Version         string          `json:"v"`            // version at the client
	Capabilities    json.RawMessage `json:"a,omitempty"`  // of the client
	Client          json.RawMessage `json:"i,omitempty"`  // the client's Implementation object
	Fingerprint     string          `json:"r"`            // of the integration
	Expires         int64           `json:"x"`            // Unix seconds
}

// binding ties a sealed value to its caller and server.
func binding(v *requestState, kind string) seal.Binding {
	return seal.Binding{Org: v.call.Caller.Scope.Org, Table: sealTable, PK: v.call.Caller.Scope.Workspace + "/" + v.facts.Server.Record.ID, SK: kind + "/" + principal(v)}
}

func sealValue(v *requestState, b seal.Binding, value any) (string, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sealed, err := v.call.Sealer.Seal(v.call.Context, b, plain)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// openSealed decodes a sealed value. It returns false for a forged or foreign value.
func openSealed(v *requestState, b seal.Binding, text string, value any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) == 0 {
		return false
	}
	plain, err := v.call.Sealer.Open(v.call.Context, b, sealed)
	return err == nil && json.Unmarshal(plain, value) == nil
}

// sessionOf opens a session id.
func sessionOf(v *requestState, id string) (*session, bool) {
	s := new(session)
	if !openSealed(v, binding(v, sealSession), id, s) || s.Expires < v.call.Now().Unix() || s.Fingerprint != v.facts.Fingerprint() {
		return nil, false
	}
	return s, true
}

// state is the content of a client's opaque request state.
type state struct {
	State    string `json:"s,omitempty"`
	HasState bool   `json:"h,omitempty"` // the server set one
	Held     string `json:"w,omitempty"` // the held call in this process that waits for input
	Digest   string `json:"d"`           // of the request
	Expires  int64  `json:"x"`
}
