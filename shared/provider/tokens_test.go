package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
)

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTokensAreCachedUntilShortlyBeforeTheyExpire(t *testing.T) {
	at := newClock()
	k := NewTokens(nil, at.now)
	n := 0
	get := func() string {
		t.Helper()
		v, err := k.Get(context.Background(), TokenKey("x", "a"), func(context.Context, http.RoundTripper) (string, time.Time, error) {
			n++
			return fmt.Sprint("t", n), at.now().Add(time.Hour), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, step := range []struct {
		wait time.Duration
		want string
	}{{0, "t1"}, {58 * time.Minute, "t1"}, {time.Minute, "t2"}, {time.Minute, "t2"}} {
		at.add(step.wait)
		if got := get(); got != step.want {
			t.Errorf("at %v: %s, want %s", at.now(), got, step.want)
		}
	}
}

func TestOneFetchForCallersAtTheSameTime(t *testing.T) {
	k := NewTokens(nil, newClock().now)
	gate := make(chan struct{})
	var fetches atomic.Int64
	fetch := func(context.Context, http.RoundTripper) (string, time.Time, error) {
		fetches.Add(1)
		<-gate
		return "t", k.Now().Add(time.Hour), nil
	}
	// The caller that begins the fetch leaves; the others still get the token.
	ctx, leave := context.WithCancel(context.Background())
	first := make(chan error)
	go func() {
		_, err := k.Get(ctx, "key", fetch)
		first <- err
	}()
	for fetches.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := <-first; !fault.Is(err, fault.RequestTimeout) {
		t.Errorf("the caller that left got %v", err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if v, err := k.Get(context.Background(), "key", fetch); v != "t" || err != nil {
				t.Errorf("got %q, %v", v, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if n := fetches.Load(); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

func TestFailuresAreNotCached(t *testing.T) {
	k := NewTokens(nil, newClock().now)
	wrong := fault.New(fault.ProviderError, "", "no")
	if _, err := k.Get(context.Background(), "key", func(context.Context, http.RoundTripper) (string, time.Time, error) {
		return "", time.Time{}, wrong
	}); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	v, err := k.Get(context.Background(), "key", func(context.Context, http.RoundTripper) (string, time.Time, error) {
		return "t", k.Now().Add(time.Hour), nil
	})
	if v != "t" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestTokensAreBounded(t *testing.T) {
	at := newClock()
	k := NewTokens(nil, at.now)
	for i := range maxCached + 50 {
		_, _ = k.Get(context.Background(), fmt.Sprint(i), func(context.Context, http.RoundTripper) (string, time.Time, error) {
			return "t", at.now().Add(time.Hour), nil
		})
	}
	if len(k.cached) != maxCached || len(k.flight) != 0 {
		t.Errorf("%d kept and %d in flight, want %d and 0", len(k.cached), len(k.flight), maxCached)
	}
}

func TestTokenKeySeparatesParts(t *testing.T) {
	if TokenKey("s", "ab", "c") == TokenKey("s", "a", "bc") {
		t.Error("the parts run into each other")
	}
	if k := TokenKey("s", "secret-value"); strings.Contains(k, "secret-value") {
		t.Error("the key shows its part")
	}
}

func TestOAuthAnswers(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		want       string
		life       time.Duration
		code       fault.Code
		answer     int
	}{
		{"good", `{"access_token":"abc","expires_in":3599,"token_type":"Bearer"}`, 200, "abc", 3599 * time.Second, "", 0},
		{"text", `{"access_token":"abc","expires_in":"3599"}`, 200, "abc", 3599 * time.Second, "", 0},
		{"refused", `{"error":"invalid_grant","error_description":"Invalid JWT: secret@example"}`, 400, "", 0, fault.ProviderError, 401},
		{"object error", `{"error":{"message":"x"}}`, 403, "", 0, fault.ProviderError, 401},
		{"down", `oops`, 500, "", 0, fault.ProviderUnreachable, 503},
		{"busy", `{}`, 429, "", 0, fault.ProviderUnreachable, 503},
		{"no token", `{"expires_in":1}`, 200, "", 0, fault.InvalidProviderResponse, 502},
		{"no life", `{"access_token":"abc"}`, 200, "", 0, fault.InvalidProviderResponse, 502},
		{"broken token", `{"access_token":"a\nb","expires_in":1}`, 200, "", 0, fault.InvalidProviderResponse, 502},
		{"html", `<html>`, 200, "", 0, fault.InvalidProviderResponse, 502},
		{"moved", ``, 302, "", 0, fault.ProviderError, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: c.status, Body: io.NopCloser(strings.NewReader(c.body))}, nil
			})
			got, life, err := oauthToken(context.Background(), rt, "https://token.example/", url.Values{}, "Example", "some_field")
			if got != c.want || life != c.life {
				t.Errorf("got %q for %v", got, life)
			}
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			f := fault.From(err)
			if f.Code != c.code || f.Status() != c.answer || f.Source != fault.SourceProvider || strings.Contains(f.Error(), "secret@") {
				t.Errorf("got %v, status %d of %s", f, f.Status(), f.Source)
			}
		})
	}
}
