package signin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/signin"
	"gateway/shared/store"
)

// box seals by turning the bytes over, and opens only what it has sealed for that place.
type box struct{}

func (box) Seal(_ context.Context, b seal.Binding, plain []byte) ([]byte, error) {
	return []byte(b.PK + "|" + b.SK + "|" + turned(string(plain))), nil
}

func (box) Open(_ context.Context, b seal.Binding, sealed []byte) ([]byte, error) {
	rest, ok := strings.CutPrefix(string(sealed), b.PK+"|"+b.SK+"|")
	if !ok {
		return nil, errors.New("of another place")
	}
	return []byte(turned(rest)), nil
}

func turned(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] ^= 0x55
	}
	return string(b)
}

// provider takes each token once, and gives another.
type provider struct {
	mu       sync.Mutex
	good     string
	requests int
	fails    error
	ended    int
	during   func()
}

func (p *provider) renewal() *signin.Renewal {
	return &signin.Renewal{
		Sealer: box{},
		NextToken: func(_ context.Context, _ *signin.Session, token string) (string, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.requests++
			if p.during != nil {
				p.during()
			}
			if p.fails != nil {
				return "", p.fails
			}
			if token != p.good {
				return "", signin.ErrNotRenewed // used before
			}
			p.good += "x"
			return p.good, nil
		},
		Ended: func(*resource.Tx, *signin.Session) error { p.ended++; return nil },
	}
}

func (p *provider) want(t *testing.T, what string, requests int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.requests != requests {
		t.Errorf("%s: asked %d times, want %d", what, p.requests, requests)
	}
}

// renewed returns a session that a provider renews.
func renewed(t *testing.T, a process) string {
	t.Helper()
	var token string
	if err := a.resources.Change(context.Background(), org, func(tx *resource.Tx) (err error) {
		token, err = signin.Begin(tx, &signin.Session{Org: org.Org, User: "u1", Method: signin.ByOIDC, Until: tx.Now().Add(12 * time.Hour), Renewable: &signin.Renewable{Token: "refresh-1", Sealer: box{}}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return token
}

// used passes an hour of use, in both processes.
func used(t *testing.T, c *clock, token string, in ...process) {
	t.Helper()
	for range 3 {
		c.pass(21 * time.Minute)
		for _, p := range in {
			s, _, err := p.Find(context.Background(), token)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Touch(context.Background(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSessionEndsWithoutRenewalByItsProvider(t *testing.T) {
	t.Parallel()
	a, b, c := processes(t)
	idp := &provider{good: "refresh-1"}
	a.Renewal, b.Renewal = idp.renewal(), idp.renewal()
	token := renewed(t, a)
	a.want(t, "at first", token, true)
	b.want(t, "at first, there", token, true)
	idp.want(t, "within the hour", 0)
	used(t, c, token, a, b)
	idp.want(t, "after an hour", 1)
	used(t, c, token, b, a)
	idp.want(t, "after another, with the token that came", 2)

	// What cannot be asked ends nothing, and is called again soon.
	idp.mu.Lock()
	idp.fails = errors.New("no answer")
	idp.mu.Unlock()
	used(t, c, token, a, b)
	idp.want(t, "the provider cannot be reached", 3)
	c.pass(6 * time.Minute)
	a.want(t, "it still cannot", token, true)
	idp.want(t, "again", 4)
	idp.mu.Lock()
	idp.fails = nil
	idp.mu.Unlock()
	c.pass(6 * time.Minute)
	b.want(t, "it can again", token, true)
	idp.want(t, "it can again", 5)

	// A sign-in that the provider does not renew is over, in every process.
	idp.mu.Lock()
	idp.good = "another"
	idp.mu.Unlock()
	c.pass(61 * time.Minute)
	a.want(t, "not renewed", token, false)
	c.pass(2 * time.Second)
	b.want(t, "not renewed, there", token, false)
	if idp.ended != 1 {
		t.Errorf("%d records of the end", idp.ended)
	}
	page, err := a.resources.Store().Table(store.Control).Query(context.Background(), store.Query{Partition: org.Partition(), Prefix: "SESSION#"})
	if err != nil || len(page.Rows) != 0 {
		t.Errorf("rows are left: %v %v", page.Rows, err)
	}
}

func TestConcurrentRenewalsCallTheProviderOnce(t *testing.T) {
	t.Parallel()
	a, b, c := processes(t)
	idp := &provider{good: "refresh-1"}
	a.Renewal, b.Renewal = idp.renewal(), idp.renewal()
	token := renewed(t, a)
	c.pass(61 * time.Minute)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			p := []process{a, b}[i%2]
			if _, _, err := p.Find(context.Background(), token); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	idp.want(t, "twenty at once", 1)
	a.want(t, "afterwards", token, true)
}

// A process that may ask nobody leaves it to others, for an hour.
func TestProcessWithoutRenewalDefersToOthers(t *testing.T) {
	t.Parallel()
	a, b, c := processes(t)
	idp := &provider{good: "refresh-1"}
	a.Renewal = idp.renewal()
	token := renewed(t, a)
	used(t, c, token, b)
	idp.want(t, "nobody asked", 0)
	for range 3 { // signs of life alone
		c.pass(20 * time.Minute)
		if s, _, err := b.Find(context.Background(), token); err == nil {
			_ = b.Touch(context.Background(), s)
		}
	}
	_, _, err := b.Find(context.Background(), token)
	if !fault.Is(err, fault.Unauthorized) || !strings.Contains(err.Error(), "/auth/self") {
		t.Errorf("late: %v", err)
	}
	a.want(t, "who may ask", token, true)
	idp.want(t, "who may ask", 1)
	b.want(t, "after it was asked", token, true)
}

// An end that comes while the provider is called stays one, and the token is shown nowhere.
func TestRenewalEndsWithTheSession(t *testing.T) {
	t.Parallel()
	a, b, c := processes(t)
	idp := &provider{good: "refresh-1"}
	a.Renewal = idp.renewal()
	token := renewed(t, a)
	s, _, err := b.Find(context.Background(), token)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := a.resources.Store().Table(store.Control).Query(context.Background(), store.Query{Partition: org.Partition(), Prefix: "SESSION#"})
	if err != nil || len(rows.Rows) != 1 || strings.Contains(fmt.Sprintf("%s", rows.Rows[0].Item), "refresh-1") {
		t.Errorf("the row: %s %v", rows.Rows, err)
	}
	idp.during = func() {
		if err := b.resources.Change(context.Background(), org, func(tx *resource.Tx) error { signin.End(tx, s); return nil }); err != nil {
			t.Error(err)
		}
	}
	c.pass(61 * time.Minute)
	a.want(t, "ended while it was renewed", token, false)
	page, err := a.resources.Store().Table(store.Control).Query(context.Background(), store.Query{Partition: org.Partition(), Prefix: "SESSION#"})
	if err != nil || len(page.Rows) != 0 {
		t.Errorf("it is there again: %v %v", page.Rows, err)
	}
}
