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
func (v *tickets) binding(kind string) seal.Binding {
	return seal.Binding{Org: v.Caller.Scope.Org, Table: sealTable, PK: v.Caller.Scope.Workspace + "/" + v.facts.Server.Record.ID, SK: kind + "/" + v.principal()}
}

func (v *tickets) seal(b seal.Binding, value any) (string, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sealed, err := v.Sealer.Seal(v.Context, b, plain)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// open reads a sealed value; false for one that is forged, of another or expired.
func (v *tickets) open(b seal.Binding, text string, value any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) == 0 {
		return false
	}
	plain, err := v.Sealer.Open(v.Context, b, sealed)
	return err == nil && json.Unmarshal(plain, value) == nil
}

// sessionOf opens the session id of the request.
func (v *tickets) sessionOf(id string) (*session, bool) {
	s := new(session)
	if !v.open(v.binding(sealSession), id, s) || s.Expires < v.Now().Unix() || s.Print != v.facts.Print() {
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
