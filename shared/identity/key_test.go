package identity

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// maxDescription is the bound of Key.Description.
const maxDescription = 1024

func TestKeyValidateNamesEveryField(t *testing.T) {
	now := day("2026-11-20")
	k := Key{
		Type: WorkspaceUser, Scopes: []string{"completions.write", "audit_logs.list"}, ExpiresAt: &now,
		Description: strings.Repeat("x", maxDescription+1), AlertEmails: []string{"a@example.com", "no address"},
		Defaults: Defaults{Metadata: map[string]string{"k": strings.Repeat("v", 129)}},
	}
	var fields []string
	for _, d := range k.Validate("", now) {
		fields = append(fields, d.Field)
	}
	want := "name description scopes[1] expires_at defaults.metadata.k alert_emails[1]"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("fields %q, want %q", got, want)
	}
	fine := Key{Type: WorkspaceUser, Scopes: []string{"gateway.policies:create"}}
	if d := fine.Validate("n", now); len(d) != 0 {
		t.Errorf("a scope in its other spellings: %v", d)
	}
	fine.Description = strings.Repeat("ü", maxDescription)
	if d := fine.Validate(strings.Repeat("ü", MaxName), now); len(d) != 0 {
		t.Errorf("the longest texts are refused: %v", d)
	}
}

func TestScopesOfKeyTypes(t *testing.T) {
	for _, c := range []struct {
		typ   KeyType
		scope string
		may   bool
	}{
		{OrganisationService, "audit_logs.list", true},
		{OrganisationService, "completions.write", false},
		{WorkspaceService, "completions.write", true},
		{WorkspaceService, "workspace_user_api_keys.create", true},
		{WorkspaceUser, "workspace_user_api_keys.create", false},
		{WorkspaceUser, "workspaces.delete", false},
		{"", "configs.list", false},
	} {
		if got := c.typ.Grantable(c.scope); got != c.may {
			t.Errorf("%s may hold %s: %v", c.typ, c.scope, got)
		}
	}
}

// keyRing is an Authenticator over a fresh store with one clock.
type keyRing struct {
	r    *resource.Resources
	auth *Authenticator
	now  time.Time
}

func newKeyRing(t *testing.T) *keyRing {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k := &keyRing{now: day("2026-11-20")}
	clock := func() time.Time { return k.now }
	k.r = resource.New(s, resource.Embedded(), resource.Clock(clock))
	k.auth = NewAuthenticator(resource.NewLoader(k.r), clock)
	return k
}

func (k *keyRing) save(t *testing.T, key *Key, status string) {
	t.Helper()
	sc := store.Scope{Org: "o", Workspace: "w"}
	err := k.r.Change(context.Background(), sc, func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(sc, KindKey, "the-key")
		if err != nil {
			return err
		}
		if !ok {
			rec = resource.Record{Scope: sc, Kind: KindKey, ID: "the-key", Name: "bot"}
		}
		rec.Status = status
		rec.Body, _ = json.Marshal(key)
		if ok {
			err = tx.Update(&rec)
		} else {
			err = tx.Create(&rec)
		}
		if err != nil {
			return err
		}
		rows, err := CredentialRows(&rec, key, "ws")
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := tx.PutCredential(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (k *keyRing) check(t *testing.T, raw string, want fault.Code) {
	t.Helper()
	p, err := k.auth.Authenticate(context.Background(), raw, AuthenticationAttempt{})
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && !fault.Is(err, want):
		t.Errorf("got %v and %v, want %s", p, err, want)
	}
}

func TestAuthenticateFollowsTheKey(t *testing.T) {
	k := newKeyRing(t)
	raw, secret := NewSecret()
	key := Key{Type: WorkspaceService, Scopes: []string{"completions.write"}, Secret: secret}
	k.check(t, raw, fault.Unauthorized)
	k.save(t, &key, StatusActive)
	k.now = k.now.Add(2 * time.Second) // the unknown key was remembered as unknown
	k.check(t, raw, "")
	k.check(t, raw+"x", fault.Unauthorized)
	k.check(t, "", fault.Unauthorized)

	p, err := k.auth.Authenticate(context.Background(), raw, AuthenticationAttempt{})
	if err != nil || !p.Has("completions.write") || p.Has("logs.view") || p.Scope != (store.Scope{Org: "o", Workspace: "w"}) {
		t.Fatalf("principal %+v, %v", p, err)
	}

	end := k.now.Add(time.Hour)
	key.ExpiresAt = &end
	k.save(t, &key, StatusActive)
	k.check(t, raw, "")
	k.now = end
	k.check(t, raw, fault.KeyExpired)

	key.ExpiresAt = nil
	k.save(t, &key, StatusPaused)
	k.check(t, raw, fault.KeyPaused)
	k.save(t, &key, StatusActive)
	k.check(t, raw, "")
	k.save(t, &key, StatusArchived)
	k.check(t, raw, fault.Unauthorized)
}

// A token that was entrusted is not written again, which would empty the caches of its
// organization, until it is to last longer.
func TestEntrustWritesOnce(t *testing.T) {
	k := newKeyRing(t)
	k.now = time.Now() // the store forgets by its own clock
	p := &Principal{KeyID: "jwt", Type: SignedToken, Scope: store.Scope{Org: "o", Workspace: "w"}, Scopes: NewScopeSet("completions.write")}
	hash, end := HashToken("a-token"), k.now.Add(time.Hour)
	for i, c := range []struct {
		until time.Time
		write bool
	}{{end, true}, {end, false}, {end.Add(-time.Minute), false}, {end.Add(time.Minute), true}} {
		p.Name = strconv.Itoa(i) // tells what was written last
		if err := k.auth.Entrust(context.Background(), p, hash, c.until); err != nil {
			t.Fatal(err)
		}
		k.now = k.now.Add(2 * time.Second) // what is absent was remembered
		if got, err := k.auth.ByHash(context.Background(), hash); err != nil || !got.Has("completions.write") || (got.Name == p.Name) != c.write {
			t.Errorf("until %s: %+v, %v", c.until, got, err)
		}
	}
}

func TestBothSecretsOfARotatedKeyWorkInTransition(t *testing.T) {
	k := newKeyRing(t)
	old, oldSecret := NewSecret()
	key := Key{Type: WorkspaceService, Scopes: []string{"completions.write"}, Secret: oldSecret}
	k.save(t, &key, StatusActive)
	fresh, freshSecret := NewSecret()
	until := k.now.Add(MinTransition)
	oldSecret.ExpiresAt = &until
	key.Secret, key.Previous = freshSecret, &oldSecret
	k.save(t, &key, StatusActive)
	k.check(t, old, "")
	k.check(t, fresh, "")
	k.now = until
	k.check(t, old, fault.Unauthorized)
	k.check(t, fresh, "")
}

// TestSharedSecretOfARotatedKeyActsForNoUser checks that the secret which others knew before a
// rotation has the key's rank, and does not act for the key's user.
func TestSharedSecretOfARotatedKeyActsForNoUser(t *testing.T) {
	k := newKeyRing(t)
	old, oldSecret := NewSecret()
	fresh, freshSecret := NewSecret()
	until := k.now.Add(MinTransition)
	oldSecret.ExpiresAt, oldSecret.Shared = &until, true
	key := Key{Type: WorkspaceUser, UserID: "u", Rank: RankManager, Scopes: []string{"completions.write"}, Secret: freshSecret, Previous: &oldSecret}
	k.save(t, &key, StatusActive)
	for raw, want := range map[string]bool{old: false, fresh: true} {
		p, err := k.auth.Authenticate(context.Background(), raw, AuthenticationAttempt{})
		if err != nil {
			t.Fatal(err)
		}
		rank, personal, err := Granted(context.Background(), nil, p)
		if err != nil || rank != RankManager || personal != want {
			t.Errorf("%v %v %v, want %v", rank, personal, err, want)
		}
	}
}

func TestTokenOfARequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		h      http.Header
		token  string
		inAuth bool
		fails  bool
	}{
		{"own header", http.Header{"X-Gateway-Api-Key": {"k"}, "Authorization": {"Bearer p"}}, "k", false, false},
		{"the same key in both", http.Header{"X-Gateway-Api-Key": {"k"}, "Authorization": {"Bearer  k "}}, "k", true, false},
		{"the same key without a scheme", http.Header{"X-Gateway-Api-Key": {" k"}, "Authorization": {"k"}}, "k", true, false},
		{"the same key among others", http.Header{"X-Gateway-Api-Key": {"k"}, "Authorization": {"Bearer p", "bearer k"}}, "k", true, false},
		{"empty in both", http.Header{"X-Gateway-Api-Key": {""}, "Authorization": {""}}, "", false, false},
		{"bearer", http.Header{"Authorization": {"bearer k"}}, "k", true, false},
		{"twice", http.Header{"X-Gateway-Api-Key": {"a", "b"}}, "", false, true},
		{"authorization twice", http.Header{"Authorization": {"Bearer a", "Bearer b"}}, "", false, true},
		{"of an Anthropic client", http.Header{"X-Api-Key": {" k"}}, "k", false, false},
		{"of an Azure client", http.Header{"Api-Key": {"k"}}, "k", false, false},
		{"of a Gemini client", http.Header{"X-Goog-Api-Key": {"k"}}, "k", false, false},
		{"of a client, and bare in Authorization", http.Header{"X-Api-Key": {"k"}, "Authorization": {"k"}}, "k", true, false},
		{"bearer before a client's own header", http.Header{"X-Api-Key": {"p"}, "Authorization": {"Bearer k"}}, "k", true, false},
		{"own header before a client's", http.Header{"X-Gateway-Api-Key": {"k"}, "X-Api-Key": {"p"}}, "k", false, false},
		{"of a client twice", http.Header{"X-Api-Key": {"a", "b"}}, "", false, true},
		{"of a client, empty", http.Header{"X-Api-Key": {" "}}, "", false, true},
		{"basic", http.Header{"Authorization": {"Basic abc"}}, "", false, true},
		{"none", http.Header{}, "", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			token, inAuth, err := Token(c.h)
			if token != c.token || inAuth != c.inAuth || (err != nil) != c.fails {
				t.Errorf("%q %v %v", token, inAuth, err)
			}
		})
	}
}

func FuzzToken(f *testing.F) {
	f.Add("Bearer abc", "key")
	f.Fuzz(func(t *testing.T, auth, key string) {
		h := http.Header{"Authorization": {auth}}
		if key != "" {
			h["X-Gateway-Api-Key"] = []string{key}
		}
		token, inAuth, err := Token(h)
		if err == nil && inAuth && !strings.Contains(auth, token) {
			t.Fatalf("%q is not in %q", token, auth)
		}
		if err == nil && !inAuth && token != "" && strings.TrimSpace(auth) == "Bearer "+token {
			t.Fatalf("%q goes on to the provider in %q", token, auth)
		}
	})
}
