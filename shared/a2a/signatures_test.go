package a2a_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gateway/shared/a2a"
	"gateway/shared/identity/signing"
	"gateway/shared/seal"
	seallocal "gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/wire"
)

func newKeys(t *testing.T) *signing.Keys {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	master, err := seallocal.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	return signing.New(signing.Options{Table: s.Table(store.Usage), Sealer: seal.New(master, nil), Now: time.Now})
}

// someCard has fields of both versions, empty fields and fields outside the model.
const someCard = `{"name":"Agent","description":"Ö <&>","version":"1","url":"https://a/rpc","preferredTransport":"JSONRPC","iconUrl":"","provider":{"organization":"O","x":1},"capabilities":{"streaming":true,"pushNotifications":false,"extensions":[{"uri":"u","required":false,"params":{"n":1.50,"e":[],"f":false}}],"stateTransitionHistory":true},"supportedInterfaces":[{"url":"https://a/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":""}],"securitySchemes":{"k":{"type":"apiKey","apiKeySecurityScheme":{"location":"header","name":"n"}}},"securityRequirements":[{"schemes":{"k":{"list":[]}}}],"skills":[{"id":"s","name":"","description":"d","tags":["t",""],"security":[]}],"x-more":null,"signatures":[{"protected":"x","signature":"y"}]}`

// modeled is what libraries of 1.0 sign.
const modelled = `{"capabilities":{"extensions":[{"params":{"f":false,"n":1.5},"uri":"u"}],"pushNotifications":false,"streaming":true},"description":"Ö <&>","name":"Agent","provider":{"organization":"O"},"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"n"}}},"skills":[{"description":"d","id":"s","tags":["t"]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a/rpc"}],"version":"1"}`

// Cards are signed in both forms, verified by another library, and deterministic.
func TestSignIsVerifiableInBothForms(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	key, err := keys.For(context.Background(), signing.ES256)
	if err != nil {
		t.Fatal(err)
	}
	out, err := a2a.Sign(json.RawMessage(someCard), key, "https://g/v1/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := a2a.Sign(out, key, "https://g/v1/.well-known/jwks.json"); string(again) != string(out) {
		t.Errorf("signed again it is another card:\n%s\n%s", out, again)
	}
	var card map[string]json.RawMessage
	var signatures []struct{ Protected, Signature string }
	if json.Unmarshal(out, &card) != nil || json.Unmarshal(card["signatures"], &signatures) != nil || len(signatures) != 2 {
		t.Fatalf("%s", out)
	}
	delete(card, "signatures")
	raw, _ := json.Marshal(card)
	whole, err := wire.AppendCanonical(nil, raw)
	if err != nil {
		t.Fatal(err)
	}
	set := published(t, keys)
	for i, payload := range []string{string(whole), modelled} {
		jws, err := jose.ParseDetached(signatures[i].Protected+".."+signatures[i].Signature, []byte(payload), []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		h := jws.Signatures[0].Protected
		if err := jws.DetachedVerify([]byte(payload), set.Key(h.KeyID)[0].Key); err != nil {
			t.Errorf("form %d: %v\n%s", i, err, payload)
		}
		if h.ExtraHeaders["jku"] != "https://g/v1/.well-known/jwks.json" || h.ExtraHeaders["typ"] != "JOSE" {
			t.Errorf("%+v", h)
		}
	}
}

func published(t *testing.T, keys *signing.Keys) (set jose.JSONWebKeySet) {
	t.Helper()
	raw, err := keys.Set(context.Background())
	if err == nil {
		err = json.Unmarshal(raw, &set)
	}
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestVerifyReportsSignatureStatus(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	key, err := keys.For(context.Background(), signing.ES256)
	if err != nil {
		t.Fatal(err)
	}
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/keys":
			raw, _ := keys.Set(r.Context())
			_, _ = w.Write(raw)
		case "/moved":
			http.Redirect(w, r, "/keys", http.StatusFound)
		default:
			_, _ = w.Write([]byte(`{"keys":[]}`))
		}
	}))
	defer home.Close()
	sign := func(jku string) string {
		out, err := a2a.Sign(json.RawMessage(someCard), key, jku)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	good := sign(home.URL + "/keys")
	var one struct {
		Signatures []json.RawMessage `json:"signatures"`
	}
	if err := json.Unmarshal([]byte(good), &one); err != nil {
		t.Fatal(err)
	}
	with := func(signatures string) string {
		var c map[string]json.RawMessage
		_ = json.Unmarshal([]byte(good), &c)
		c["signatures"] = json.RawMessage(signatures)
		raw, _ := json.Marshal(c)
		return string(raw)
	}
	for what, c := range map[string]struct{ card, want string }{
		"good":                {good, "valid"},
		"by the model alone":  {with("[" + string(one.Signatures[1]) + "]"), "valid"},
		"by its text alone":   {with("[" + string(one.Signatures[0]) + "]"), "valid"},
		"a bad one besides":   {with(`[{"protected":"x","signature":"y"},` + string(one.Signatures[0]) + "]"), "valid"},
		"another card":        {strings.Replace(good, `"Agent"`, `"Other"`, 1), "invalid"},
		"an address more":     {strings.Replace(good, `"https://a/rpc"`, `"https://b/rpc"`, 2), "invalid"},
		"a key that is gone":  {sign(home.URL + "/none"), "unchecked"},
		"keys that moved":     {sign(home.URL + "/moved"), "unchecked"},
		"keys elsewhere":      {sign("http://127.0.0.1:1/keys"), "unchecked"},
		"no keys":             {sign(""), "unchecked"},
		"a file":              {sign("file:///etc/keys"), "unchecked"},
		"garbage":             {with(`[{"protected":"x","signature":"y"}]`), "unchecked"},
		"another form":        {with(`{"a":1}`), "unchecked"},
		"none":                {with(`[]`), ""},
		"null":                {with(`null`), ""},
		"a signature of none": {with(`[{"protected":"eyJhbGciOiJub25lIiwia2lkIjoiayIsImprdSI6Imh0dHBzOi8vYSJ9","signature":""}]`), "unchecked"},
	} {
		got := a2a.Verify(context.Background(), http.DefaultTransport, json.RawMessage(c.card), home.URL)
		if status := statusOf(got); status != c.want {
			t.Errorf("%s: %q, want %q", what, status, c.want)
		}
	}
	if got := a2a.Verify(context.Background(), http.DefaultTransport, json.RawMessage(good), home.URL); got.KeyID != key.ID || got.KeySet != home.URL+"/keys" {
		t.Errorf("%+v", got)
	}
}

func statusOf(v *a2a.Verified) string {
	if v == nil {
		return ""
	}
	return v.Status
}
