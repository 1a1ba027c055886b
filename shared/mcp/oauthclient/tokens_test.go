package oauthclient

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/seal"
	"gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/tenant/upstream"
)

// TestAccessRenewsExpiringTokens: a token whose end the server does not state is used until it is
// rejected, and only the end of a grant makes the user sign in again.
func TestAccessRenewsExpiringTokens(t *testing.T) {
	t.Parallel()
	const unknownClient = "sign in"
	for name, c := range map[string]struct {
		refresh  string        // the refresh token that is held
		expires  time.Duration // of the access token; 0: not stated
		after    time.Duration // of the next call
		doubted  bool          // the server has rejected the token
		status   int           // of the token endpoint
		media    string
		body     string
		want     string // the access token, or what else becomes of it
		requests int    // requests to the token endpoint
		stays    bool   // the tokens are kept
	}{
		"no end":                       {refresh: "r", after: 1000 * time.Hour, want: "old", stays: true},
		"no end, no refresh":           {after: 1000 * time.Hour, want: "old", stays: true},
		"no end, refused":              {refresh: "r", doubted: true, status: 200, body: `{"access_token":"new"}`, want: "new", requests: 1, stays: true},
		"no end, no refresh, refused":  {doubted: true, want: unknownClient, stays: true},
		"before its end":               {refresh: "r", expires: time.Hour, after: 59 * time.Minute, want: "old", stays: true},
		"after its end":                {refresh: "r", expires: time.Hour, after: time.Hour, status: 200, body: `{"access_token":"new","expires_in":"3599"}`, want: "new", requests: 1, stays: true},
		"a form":                       {refresh: "r", expires: time.Hour, after: time.Hour, status: 200, media: "application/x-www-form-urlencoded", body: `access_token=new&token_type=bearer`, want: "new", requests: 1, stays: true},
		"the grant ended":              {refresh: "r", expires: time.Hour, after: time.Hour, status: 400, body: `{"error":"invalid_grant"}`, want: unknownClient, requests: 1},
		"the grant ended, with 200":    {refresh: "r", expires: time.Hour, after: time.Hour, status: 200, body: `{"error":"bad_refresh_token"}`, want: unknownClient, requests: 1},
		"the client is unknown":        {refresh: "r", expires: time.Hour, after: time.Hour, status: 401, body: `{"error":"invalid_client"}`, requests: 1, stays: true},
		"the scope is refused":         {refresh: "r", expires: time.Hour, after: time.Hour, status: 400, body: `{"error":"invalid_scope"}`, requests: 1, stays: true},
		"a failure that names a grant": {refresh: "r", expires: time.Hour, after: time.Hour, status: 503, body: `{"error":"invalid_grant"}`, requests: 1, stays: true},
		"a page":                       {refresh: "r", expires: time.Hour, after: time.Hour, status: 400, media: "text/html", body: `<html>`, requests: 1, stays: true},
	} {
		requests := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests++
			if w.Header().Set("Content-Type", "application/json"); c.media != "" {
				w.Header().Set("Content-Type", c.media)
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		master, err := local.Open(filepath.Join(t.TempDir(), "master.key"))
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		tokens := &Tokens{Table: db.Table(store.Usage), Sealer: seal.New(master, clock), Transport: http.DefaultTransport, Now: clock}
		at := UserKey{Scope: store.Scope{Org: "o", Workspace: "w"}, Server: "s", User: "u"}
		held := &StoredTokens{Token: s.URL, Access: "old", Refresh: c.refresh}
		if c.expires > 0 {
			held.Expires = now.Add(c.expires).Unix()
		}
		it, err := held.item(ctx, tokens.Sealer, at, "1", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := tokens.Table.Put(ctx, store.Row{Key: at.key(), Item: it, Expires: now.Add(unused)}); err != nil {
			t.Fatal(err)
		}
		if now = now.Add(c.after); c.doubted {
			tokens.MarkRejected(at, "old")
		}
		k := tokens.place(at)
		err = tokens.read(ctx, k, at, "1")
		var failed *upstream.Failure
		switch {
		case c.want == unknownClient:
			if !errors.Is(err, mcp.ErrSignIn) {
				t.Errorf("%s: %v, want a sign-in", name, err)
			}
		case c.want == "":
			if !errors.As(err, &failed) {
				t.Errorf("%s: %v, want the server's failure", name, err)
			}
		case err != nil || k.tokens.Access != c.want:
			t.Errorf("%s: %+v, %v", name, k.tokens, err)
		}
		if requests != c.requests {
			t.Errorf("%s: the token endpoint was asked %d times", name, requests)
		}
		if _, there, err := tokens.Table.Get(ctx, at.key(), true); err != nil || there != c.stays {
			t.Errorf("%s: kept %t, %v", name, there, err)
		}
		s.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
