package published

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// source is an address whose answer tests choose.
type source struct {
	*httptest.Server
	requests atomic.Int64
	mu       sync.Mutex
	code     int
	text     string
}

func newSource(t *testing.T) *source {
	s := &source{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.requests.Add(1)
		s.mu.Lock()
		defer s.mu.Unlock()
		w.WriteHeader(s.code)
		fmt.Fprint(w, s.text)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *source) respond(code int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code, s.text = code, text
}

// sheet prices openai/newest at so many dollars for a million tokens.
func sheet(name string, dollars int) string {
	return fmt.Sprintf("prices\t%s\t2\nopenai\tnewest\tinput=%d\nopenai\tgpt-4o\tinput=%d output=1\n", name, dollars, dollars)
}

type fixture struct {
	t     *testing.T
	table store.Table
	src   *source
	now   atomic.Int64
}

func newFixture(t *testing.T) *fixture {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	h := &fixture{t: t, table: s.Table(store.Control), src: newSource(t)}
	h.pass(1_000_000 * time.Hour / 2)
	return h
}

func (h *fixture) pass(d time.Duration) { h.now.Add(int64(d)) }

// instance is a process that does not refresh on its own, so that tests say when.
func (h *fixture) instance() *Prices {
	return Open(Options{URL: h.src.URL, Transport: http.DefaultTransport, Table: h.table, Base: pricing.Default(), Now: func() time.Time { return time.Unix(0, h.now.Load()) }})
}

func (h *fixture) refresh(p *Prices, message string) {
	h.t.Helper()
	err := p.Refresh(context.Background())
	if message == "" && err != nil || message != "" && (err == nil || !strings.Contains(err.Error(), message)) {
		h.t.Fatalf("refresh: %v, want %q", err, message)
	}
}

func (h *fixture) expect(p *Prices, when string, dollars int) {
	h.t.Helper()
	var u pricing.Usage
	u.Set(pricing.Input, 1_000_000)
	b := p.Book().Current()
	price, ok := b.Price("openai", "newest", pricing.Options{})
	if ok != (dollars > 0) || ok && price.Cost(u) != pricing.NanoDollars(dollars)*pricing.Dollar {
		h.t.Errorf("%s: %v %v, want %d dollars", when, price.Cost(u), ok, dollars)
	}
	if named := strings.Contains(b.Version(), "+"); named != (dollars > 0) {
		h.t.Errorf("%s: version %s", when, b.Version())
	}
}

func TestASheetIsFetchedOnceAnHourForAllProcesses(t *testing.T) {
	h := newFixture(t)
	h.src.respond(200, sheet("one", 7))
	a, b := h.instance(), h.instance()
	h.expect(a, "at first", 0)
	h.refresh(a, "")
	h.expect(a, "fetched", 7)
	h.refresh(b, "")
	h.expect(b, "by the other process", 7)
	h.expect(h.instance(), "by one that begins", 7) // its first question looks
	h.src.respond(200, sheet("two", 8))
	h.pass(59 * time.Minute)
	h.refresh(a, "")
	h.refresh(b, "")
	if n := h.src.requests.Load(); n != 1 {
		t.Errorf("the address was asked %d times within the hour", n)
	}
	h.pass(time.Minute)
	h.refresh(b, "")
	h.refresh(a, "")
	h.expect(a, "after an hour", 8)
	if n := h.src.requests.Load(); n != 2 {
		t.Errorf("the address was asked %d times", n)
	}
}

func TestTheOldSheetHoldsWhileTheSourceFails(t *testing.T) {
	h := newFixture(t)
	h.src.respond(200, sheet("one", 7))
	a, b := h.instance(), h.instance()
	h.refresh(a, "")
	for _, c := range []struct {
		code          int
		text, message string
	}{
		{503, "", "status 503"},
		{200, "<html>moved</html>", "must be prices"},
		{302, sheet("two", 8), "status 302"},
		{200, "", "is empty"},
		{200, sheet("two", 8)[:40], "line"},
		{200, strings.TrimSuffix(sheet("two", 8), "openai\tgpt-4o\tinput=8 output=1\n"), "its header states 2"},
		{200, "prices\tsmall\t1\nopenai\tgpt-4o\tinput=1\n", "openai/newest would lose its price"},
		{200, "prices\tlarge\t1\nopenai\tgpt-4o\tinput=1\n#" + strings.Repeat("x", pricing.MaxSheet), "are allowed"},
	} {
		h.pass(2 * time.Hour)
		h.src.respond(c.code, c.text)
		h.refresh(a, c.message)
		h.expect(a, c.message, 7)
		before := h.src.requests.Load()
		h.refresh(b, "") // it waits, as the other one does
		h.expect(b, "by the other process: "+c.message, 7)
		h.expect(h.instance(), "by one that begins: "+c.message, 7)
		if h.src.requests.Load() != before {
			t.Errorf("%s: another process asked at once", c.message)
		}
	}
	item, _, err := h.table.Get(context.Background(), key(), true)
	if err != nil || !strings.Contains(item.String("fault"), "are allowed") {
		t.Errorf("the fault is not noted: %v %v", item.String("fault"), err)
	}
	h.src.respond(200, sheet("three", 9))
	h.pass(retryAfter)
	h.refresh(b, "")
	h.refresh(a, "")
	h.expect(a, "when it answers again", 9)
}

func TestAModelGetsAPriceAndItsLossIsReported(t *testing.T) {
	h := newFixture(t)
	h.src.respond(200, "prices\tnone\t0\n")
	p := h.instance()
	h.refresh(p, "")
	if _, ok := p.Book().Current().Price("openai", "newest", pricing.Options{}); ok {
		t.Error("it has a price already")
	}
	h.src.respond(200, sheet("one", 7))
	h.pass(sheetTTL)
	h.refresh(p, "")
	h.expect(p, "priced", 7)
	h.src.respond(200, "prices\tnone\t1\nopenai\tnewest\tunpriced\n")
	h.pass(sheetTTL)
	h.refresh(p, "")
	if _, ok := p.Book().Current().Price("openai", "newest", pricing.Options{}); ok {
		t.Error("it still has a price")
	}
}

// If many processes find at once that the hour is over, one of them fetches; if it dies
// meanwhile, the others wait for only a minute.
func TestOneProcessFetches(t *testing.T) {
	h := newFixture(t)
	h.src.respond(200, sheet("one", 7))
	var wg sync.WaitGroup
	var all []*Prices
	for range 8 {
		p := h.instance()
		all = append(all, p)
		wg.Go(func() {
			if err := p.Refresh(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := h.src.requests.Load(); n != 1 {
		t.Errorf("the address was asked %d times", n)
	}
	for _, p := range all {
		h.refresh(p, "")
		h.expect(p, "one of many", 7)
	}
	h.pass(sheetTTL)
	r := row{there: true}
	var err error
	if r.item, _, err = h.table.Get(context.Background(), key(), true); err != nil {
		t.Fatal(err)
	}
	if mine, err := all[0].write(context.Background(), &r, store.Item{"due": time.Unix(0, h.now.Load()).Add(lease).UnixMilli()}); err != nil || !mine {
		t.Fatal(mine, err)
	}
	h.refresh(all[1], "")
	if n := h.src.requests.Load(); n != 1 {
		t.Errorf("it was asked while another process was at it")
	}
	h.pass(lease)
	h.refresh(all[1], "")
	if n := h.src.requests.Load(); n != 2 {
		t.Errorf("it was asked %d times after that one died", n)
	}
}

// Questions do not wait: they let the sheet be fetched, and get what is there.
func TestQuestionsRefreshBesideThemselves(t *testing.T) {
	h := newFixture(t)
	h.src.respond(200, sheet("one", 7))
	o := h.instance().o
	o.Fetch = true
	p := Open(o)
	until := func(dollars int) {
		t.Helper()
		want := pricing.NanoDollars(dollars) * pricing.Dollar
		var u pricing.Usage
		u.Set(pricing.Input, 1_000_000)
		for range 2000 {
			if price, ok := p.Book().Current().Price("openai", "newest", pricing.Options{}); ok && price.Cost(u) == want {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Fatalf("never %d dollars", dollars)
	}
	until(7)
	h.src.respond(200, sheet("two", 8))
	h.pass(sheetTTL + lookEvery)
	until(8)
}

// What the store has of another version of the program does not keep the sheet away.
func TestInvalidStoredSheetIsFetchedAgain(t *testing.T) {
	h := newFixture(t)
	h.src.respond(200, sheet("one", 7))
	row := store.Row{Key: key(), Item: store.Item{"url": h.src.URL, "rev": int64(4), "due": time.Unix(0, h.now.Load()).Add(sheetTTL).UnixMilli(), "sheet": []byte("no sheet"), "version": "x"}}
	if err := h.table.Put(context.Background(), row); err != nil {
		t.Fatal(err)
	}
	p := h.instance()
	if _, err := p.Reload(context.Background()); err == nil {
		t.Error("nothing is wrong")
	}
	h.refresh(p, "")
	h.expect(p, "fetched anew", 7)
}
