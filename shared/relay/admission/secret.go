package admission

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// prefix starts every secret: SDKs accept no other in browsers.
const prefix = "ek_"

// credentialKind is the partition kind of the rows of secrets.
const credentialKind = "EPHEMERAL"

// IsClientSecret reports whether a credential is a client secret. No API key of the gateway is one.
func IsClientSecret(credential string) bool { return strings.HasPrefix(credential, prefix) }

// ClientSecretToken is the stored content of a client secret.
type ClientSecretToken struct {
	Key         string          `json:"key"`   // hash of the API key that created it
	Model       string          `json:"model"` // as its creator named it, with @slug/; "" if the config determines it
	Transcribes bool            `json:"transcribes,omitempty"`
	Beta        bool            `json:"beta,omitempty"`     // the settings are in the beta format
	Settings    json.RawMessage `json:"settings,omitempty"` // of the session, without its model; nil: none
	Headers     http.Header     `json:"headers,omitempty"`  // of the request that created it
	Until       time.Time       `json:"until"`
}

// ClientSecretScope stores secrets. All fields are required.
type ClientSecretScope struct {
	Keys   store.Table // store.Keys
	Sealer seal.Sealer
	Now    func() time.Time
}

func (r *ClientSecretScope) binding(org string, k store.Key) seal.Binding {
	return seal.Binding{Org: org, Table: string(store.Keys), PK: k.PK(), SK: k.SK()}
}

// Store stores a secret and returns its credential.
func (r *ClientSecretScope) Store(ctx context.Context, sc store.Scope, s *ClientSecretToken) (raw string, err error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	raw = prefix + base64.RawURLEncoding.EncodeToString(random[:])
	plain, err := json.Marshal(s)
	if err != nil {
		return "", fault.Internal(err)
	}
	k := store.Credential(credentialKind, identity.HashToken(raw))
	body, err := r.Sealer.Seal(ctx, r.binding(sc.Org, k), plain)
	if err != nil {
		return "", fault.Unavailable(err)
	}
	if err := r.Keys.Put(ctx, store.Row{Key: k, Item: store.Item{"org": sc.Org, "ws": sc.Workspace, "body": body}, Expires: s.Until}); err != nil {
		return "", fault.Unavailable(err)
	}
	return raw, nil
}

// maxRaw limits a credential that is looked up, in bytes.
const maxRaw = 128

// Open returns the secret of a credential: 401 if it does not exist or is expired. It does not
// check whether the secret's key is still valid.
func (r *ClientSecretScope) Open(ctx context.Context, raw string) (*ClientSecretToken, error) {
	if len(raw) > maxRaw {
		return nil, errUnknown()
	}
	k := store.Credential(credentialKind, identity.HashToken(raw))
	it, ok, err := r.Keys.Get(ctx, k, true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if !ok {
		return nil, errUnknown()
	}
	plain, err := r.Sealer.Open(ctx, r.binding(it.String("org"), k), it.Bytes("body"))
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	s := new(ClientSecretToken)
	if err := json.Unmarshal(plain, s); err != nil {
		return nil, fault.Internal(fmt.Errorf("ephemeral: stored secret: %w", err))
	}
	if !r.Now().Before(s.Until) {
		return nil, errUnknown()
	}
	return s, nil
}

func errUnknown() *fault.Fault {
	return fault.New(fault.Unauthorized, "x-gateway-api-key", "Invalid client secret: it does not exist, or it has expired. Create a new one with POST /v1/realtime/client_secrets")
}

// bound reports whether a secret stores a header of its request: those that determine how
// requests are served, and on which account.
func bound(name string) bool {
	switch name {
	case "Authorization", "Api-Key", "X-Api-Key":
		return true
	case "X-Gateway-Api-Key", "X-Gateway-Trace-Id", "X-Gateway-Span-Id", "X-Gateway-Span-Name", "X-Gateway-Parent-Span-Id":
		return false
	}
	return strings.HasPrefix(name, "X-Gateway-") || strings.HasPrefix(name, "Openai-")
}

// Bind returns the headers that a secret stores of the request that creates it; others are the
// forwarded ones. h contains no key of the gateway.
func Bind(h http.Header, others []string) http.Header {
	out := http.Header{}
	for name, values := range h {
		if bound(name) || slices.ContainsFunc(others, func(o string) bool { return http.CanonicalHeaderKey(o) == name }) {
			out[name] = slices.Clone(values)
		}
	}
	delete(out, "X-Gateway-Api-Key")
	return out
}

// Unbind returns the headers of a session opened with the secret: those of its creator override
// all that affect the request. The error names one that the client may not set.
func (s *ClientSecretToken) Unbind(h http.Header, raw string) (http.Header, error) {
	out := h.Clone()
	for name := range h {
		switch {
		case name == "Authorization" || name == "Api-Key" || name == "X-Api-Key":
			delete(out, name) // the secret, or an account not chosen by its creator
		case name == "Openai-Beta" && s.Headers[name] == nil:
		case bound(name):
			if !slices.Equal(h[name], s.Headers[name]) {
				return nil, fault.Newf(fault.NotAllowed, strings.ToLower(name), "Was set when the client secret was created, and cannot be sent with it")
			}
		}
	}
	for name, values := range s.Headers {
		out[name] = values
	}
	out["X-Gateway-Api-Key"] = []string{raw}
	return out, nil
}

// Query returns the query of a session opened with the secret, with the secret's model or
// intent. An unparsable query is unchanged and rejected later.
func (s *ClientSecretToken) Query(raw string) (string, error) {
	q, err := url.ParseQuery(raw)
	if err != nil || len(q["model"]) > 1 || len(q["intent"]) > 1 {
		return raw, nil
	}
	if err := s.opens(q.Get("model"), q.Get("intent")); err != nil {
		return "", err
	}
	if q.Del("model"); s.Model != "" {
		q.Set("model", s.Model)
	}
	if s.Transcribes {
		q.Set("intent", "transcription")
	}
	return q.Encode(), nil
}

// opens checks the requested session: it must match the secret or leave the choice to it.
func (s *ClientSecretToken) opens(model, intent string) error {
	_, plain, _ := strings.Cut(s.Model, "/")
	switch {
	case s.Transcribes && model != "":
		return fault.Invalid("model", "must be omitted: the client secret opens transcription sessions")
	case !s.Transcribes && intent != "":
		return fault.Invalid("intent", "must be omitted: the client secret opens sessions with a model")
	case model != "" && s.Model != "" && model != s.Model && !(strings.HasPrefix(s.Model, "@") && model == plain):
		return fault.Newf(fault.ModelNotAllowed, "model", "The client secret opens only sessions of %q", fault.Clip(s.Model, 200))
	}
	return nil
}

// FirstEvent returns the event that applies the settings to a new session; nil without any.
func (s *ClientSecretToken) FirstEvent() []byte {
	if len(s.Settings) == 0 {
		return nil
	}
	kind := "session.update"
	if s.Beta && s.Transcribes {
		kind = "transcription_session.update"
	}
	return slices.Concat([]byte(`{"type":"`+kind+`","session":`), s.Settings, []byte("}"))
}
