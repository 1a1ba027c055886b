package resource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/store"
)

// gatedStore lets a test do something between a read and the use of its result: after, if
// set, runs once after the n-th read.
type gatedStore struct {
	store.Store
	n     int
	after func()
}

type gatedTable struct {
	store.Table
	g *gatedStore
}

func (g *gatedStore) Table(n store.TableName) store.Table { return gatedTable{g.Store.Table(n), g} }

func (g *gatedStore) pass() {
	if g.after == nil {
		return
	}
	if g.n--; g.n == 0 {
		f := g.after
		g.after = nil
		f()
	}
}

func (t gatedTable) Get(ctx context.Context, k store.Key, consistent bool) (store.Item, bool, error) {
	it, ok, err := t.Table.Get(ctx, k, consistent)
	t.g.pass()
	return it, ok, err
}

func (t gatedTable) GetMany(ctx context.Context, ks []store.Key) (map[store.Key]store.Item, error) {
	m, err := t.Table.GetMany(ctx, ks)
	t.g.pass()
	return m, err
}

func (t gatedTable) Query(ctx context.Context, q store.Query) (store.Page, error) {
	p, err := t.Table.Query(ctx, q)
	t.g.pass()
	return p, err
}

// What a reader finds, or does not find, during a change must never be what is cached after the
// change. This is tested for each cached object and each read on the way to it; for objects
// that appear, change or disappear; and for writers in this process and in another.
func TestWhatWasReadBeforeAChangeIsNotRemembered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	type subject struct {
		name string
		read func(t *testing.T, p gated) string
		set  func(t *testing.T, r *Resources, to string) // "-": gone
	}
	value := func(v string, ok bool, err error) string {
		if err != nil {
			return err.Error()
		}
		if !ok {
			return "-"
		}
		return v
	}
	view := func(t *testing.T, p gated) *View {
		v, err := p.l.Fresh(ctx, "o1")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	record := func(t *testing.T, r *Resources, to string) {
		t.Helper()
		err := r.Change(ctx, scopeA, func(tx *Tx) error {
			rec, ok, err := tx.Get(scopeA, widget, "slug")
			switch {
			case err != nil:
				return err
			case to == "-" && !ok:
				return nil
			case to == "-":
				return tx.Delete(&rec)
			case !ok:
				rec := Record{Scope: scopeA, Kind: widget, ID: "id", Slug: "slug", Name: to}
				return tx.Create(&rec)
			}
			rec.Name = to
			return tx.Update(&rec)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	subjects := []subject{
		{"credential", func(t *testing.T, p gated) string {
			return value(LoadCredential(ctx, p.l, "KEY", "h", statusOf))
		}, func(t *testing.T, r *Resources, to string) {
			err := r.Change(ctx, scopeA, func(tx *Tx) error {
				if to == "-" {
					tx.DeleteCredential(store.Credential("KEY", "h"))
					return nil
				}
				return tx.PutCredential(keyRow("o1", "h", to))
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"record by slug", func(t *testing.T, p gated) string {
			return value(Load(ctx, view(t, p), scopeA, widget, "slug", nameOf))
		}, record},
		{"record by id", func(t *testing.T, p gated) string {
			return value(Load(ctx, view(t, p), scopeA, widget, "id", nameOf))
		}, record},
		{"all records", func(t *testing.T, p gated) string {
			all, err := LoadAll(ctx, view(t, p), scopeA, widget, nameOf)
			return value(fmt.Sprint(all), len(all) > 0, err)
		}, record},
		{"list rows", func(t *testing.T, p gated) string {
			rows, err := p.r.List(ctx, scopeA, widget)
			return value(names(rows), len(rows) > 0, err)
		}, record},
	}
	for _, s := range subjects {
		for _, step := range [][2]string{{"-", "one"}, {"one", "two"}, {"one", "-"}} {
			for nth := 1; nth <= 4; nth++ {
				for _, how := range []string{"embedded", "embedded, itself", "own change", "itself", "another process"} {
					t.Run(fmt.Sprintf("%s, %s to %s behind read %d, %s", s.name, step[0], step[1], nth, how), func(t *testing.T) {
						t.Parallel()
						shared, c := openStore(t), newTestClock()
						g := &gatedStore{Store: shared}
						opts := []Option{Clock(c.now)}
						if strings.HasPrefix(how, "embedded") {
							opts = append(opts, Embedded())
						}
						reader := New(g, opts...)
						p := gated{reader, NewLoader(reader)}
						writer := New(shared, Clock(c.now))
						if strings.HasSuffix(how, "itself") {
							writer = reader
						} else if how != "another process" {
							writer.OnChange(reader.announce)
						}
						if step[0] != "-" {
							s.set(t, writer, step[0])
						}
						g.n, g.after = nth, func() { s.set(t, writer, step[1]) }
						s.read(t, p) // what it gives is of before or of after
						if g.after != nil {
							return // it reads less often
						}
						if how == "another process" {
							c.advance(CheckAfter)
						}
						want := step[1]
						if s.name == "all records" && want != "-" {
							want = "[" + want + "]"
						}
						for range 2 {
							if got := s.read(t, p); got != want {
								t.Errorf("after the change to %s: %s", want, got)
							}
						}
					})
				}
			}
		}
	}
}

// gated is a process with reads that a test can stop.
type gated struct {
	r *Resources
	l *Loader
}

// How long a credential stays unknown counts from the read, not from when a slow
// reader comes to remember it.
func TestUnknownCountsFromTheRead(t *testing.T) {
	t.Parallel()
	shared, c := openStore(t), newTestClock()
	g := &gatedStore{Store: shared}
	reader, writer := New(g, Clock(c.now)), New(shared, Clock(c.now))
	l := NewLoader(reader)
	g.n, g.after = 1, func() {
		err := writer.Change(context.Background(), scopeA, func(tx *Tx) error { return tx.PutCredential(keyRow("o1", "h", "active")) })
		if err != nil {
			t.Error(err)
		}
		c.advance(unknownFor)
	}
	if _, ok, err := LoadCredential(context.Background(), l, "KEY", "h", statusOf); ok || err != nil {
		t.Fatal(ok, err)
	}
	if got, _, err := LoadCredential(context.Background(), l, "KEY", "h", statusOf); got != "active" || err != nil {
		t.Errorf("%v after the read: %q, %v", unknownFor, got, err)
	}
}
