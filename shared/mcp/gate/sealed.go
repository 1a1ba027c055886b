package gate

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"gateway/shared/seal"
)

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
