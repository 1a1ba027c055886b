package device

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// at returns a store with resources at a time that the test moves.
func at(t *testing.T) (store.Store, *resource.Resources, *time.Time) {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	now := time.Now()
	return s, resource.New(s, resource.Clock(func() time.Time { return now })), &now
}

func TestPollIsPendingUntilTheUserDecides(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r, now := at(t)
	req := &Request{Client: "c", ClientName: "A client", Wants: APIKey, ClientIP: "192.0.2.1", Agent: "x"}
	code, err := Begin(ctx, s, req, *now)
	if err != nil {
		t.Fatal(err)
	}
	poll := func(want error) *Request {
		t.Helper()
		got, err := Poll(ctx, s, code, "c", *now)
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
		return got
	}
	poll(ErrPending)
	poll(ErrSlowDown)
	*now = now.Add(6 * time.Second) // enough before it was told to slow down
	poll(ErrSlowDown)
	*now = now.Add(16 * time.Second)
	poll(ErrPending)
	for _, of := range []struct{ code, client string }{{code, "d"}, {code + "x", "c"}, {"", "c"}, {strings.Repeat("A", codeLength), "c"}} {
		if _, err := Poll(ctx, s, of.code, of.client, *now); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v: %v", of, err)
		}
	}
	found, err := Find(ctx, s, " "+strings.ToLower(FormatCode(req.UserCode))+" ", *now)
	if err != nil || found.ClientName != "A client" || found.Wants != APIKey || found.ClientIP != "192.0.2.1" || found.Agent != "x" || !found.Until.Equal(req.Until) {
		t.Fatalf("%+v %v", found, err)
	}
	org := store.Scope{Org: "o"}
	by := By{Org: "o", User: "u", Session: "s", Method: "oidc", Via: "v", Subject: "sub", SID: "sid", LogoutURL: "https://x", Authenticated: now.UTC().Truncate(time.Millisecond)}
	allow := func() error {
		return r.Change(ctx, org, func(tx *resource.Tx) error { found.Allow(tx, by, "w"); return nil })
	}
	if err := allow(); err != nil {
		t.Fatal(err)
	}
	if err := allow(); !errors.Is(err, ErrUnknown) {
		t.Errorf("allowed twice: %v", err)
	}
	if _, err := Find(ctx, s, req.UserCode, *now); !errors.Is(err, ErrUnknown) {
		t.Errorf("decided and found: %v", err)
	}
	got := poll(nil)
	by.At = got.By.At
	if got.By != by || got.By.At.UnixMilli() != now.UnixMilli() || got.Workspace != "w" {
		t.Errorf("%+v", got)
	}
	take := func() error {
		return r.Change(ctx, org, func(tx *resource.Tx) error { got.StageCollected(tx); return nil })
	}
	if err := errors.Join(take()); err != nil {
		t.Fatal(err)
	}
	if err := take(); !errors.Is(err, ErrUnknown) {
		t.Errorf("taken twice: %v", err)
	}
	poll(ErrUnknown)
}

func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r, now := at(t)
	old, refused := &Request{Client: "c", Wants: Session}, &Request{Client: "c", Wants: Session}
	oldCode, err := Begin(ctx, s, old, *now)
	if err != nil {
		t.Fatal(err)
	}
	code, err := Begin(ctx, s, refused, *now)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Change(ctx, store.Scope{Org: "o"}, func(tx *resource.Tx) error { refused.Deny(tx); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := Poll(ctx, s, code, "c", *now); !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
	*now = now.Add(Life)
	if _, err := Poll(ctx, s, oldCode, "c", *now); !errors.Is(err, ErrExpired) {
		t.Error(err)
	}
	if _, err := Find(ctx, s, old.UserCode, *now); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

func TestNormalizeCodeAcceptsTypedVariants(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 {
		c := userCode()
		if got, ok := NormalizeCode(FormatCode(c)); !ok || got != c || seen[c] {
			t.Fatalf("%s %s", c, got)
		}
		seen[c] = true
	}
	for typed, want := range map[string]string{
		"bcdf-ghjk": "BCDFGHJK", "BCDF GHJK": "BCDFGHJK", "BCDFGHJK": "BCDFGHJK", "": "", "BCDF-GHJ": "", "BCDF-GHJKL": "", "ACDF-GHJK": "", "BCDF_GHJK": "", "BCDF-GHJ\x00": "", "BCDF-GHJ\xff": "", "ＢCDF-GHJK": "", strings.Repeat("-", 65): "",
	} {
		if got, ok := NormalizeCode(typed); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %t", typed, got, ok)
		}
	}
}

func FuzzSpelled(f *testing.F) {
	f.Add("bcdf-ghjk")
	f.Fuzz(func(t *testing.T, typed string) {
		code, ok := NormalizeCode(typed)
		if again, twice := NormalizeCode(code); ok && (!twice || again != code || len(code) != userLength) {
			t.Errorf("%q: %q %q", typed, code, again)
		}
	})
}
