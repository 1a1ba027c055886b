package gate

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"gateway/shared/seal"
)

// What is sealed, and for how long.
const (
	sealTable   = "mcp"
	sealSession = "session"
	sealState   = "state"

	sessionLife = 24 * time.Hour
	stateLife   = time.Hour
)

// session is what a client's session id says.
type session struct {
	Upstream  string          `json:"u,omitempty"`  // the server's own id
	Speaks    string          `json:"uv,omitempty"` // version towards the server; "": the server knows no session of this one
	Version   string          `json:"v"`            // towards the client
	Abilities json.RawMessage `json:"a,omitempty"`  // the client's
	Client    json.RawMessage `json:"i,omitempty"`  // what it calls itself
	Print     string          `json:"r"`            // of the integration
	Expires   int64           `json:"x"`            // Unix seconds
}

// binding ties a sealed value to its caller and its server: it opens for no other.
func binding(v *visit, kind string) seal.Binding {
	return seal.Binding{Org: v.call.Caller.Scope.Org, Table: sealTable, PK: v.call.Caller.Scope.Workspace + "/" + v.facts.Server.Record.ID, SK: kind + "/" + principal(v)}
}

func sealValue(v *visit, b seal.Binding, value any) (string, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sealed, err := v.call.Sealer.Seal(v.call.Context, b, plain)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// openSealed reads a sealed value; false for one that is forged, of another or expired.
func openSealed(v *visit, b seal.Binding, text string, value any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) == 0 {
		return false
	}
	plain, err := v.call.Sealer.Open(v.call.Context, b, sealed)
	return err == nil && json.Unmarshal(plain, value) == nil
}

// sessionOf opens the session id of the request.
func sessionOf(v *visit, id string) (*session, bool) {
	s := new(session)
	if !openSealed(v, binding(v, sealSession), id, s) || s.Expires < v.call.Now().Unix() || s.Print != v.facts.Print() {
		return nil, false
	}
	return s, true
}

// state is what a client's opaque state says: the server's own, for one request.
type state struct {
	State   string `json:"s,omitempty"`
	Has     bool   `json:"h,omitempty"` // the server gave one
	Held    string `json:"w,omitempty"` // the call that waits for the answers in this process
	Digest  string `json:"d"`           // of the request that it is for
	Expires int64  `json:"x"`
}
