package resource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gateway/shared/store"
)

// After a change a list shows the stored state, regardless of the writer and of concurrent
// work. Writers in one process or two create, change, archive and delete records of two lists,
// and read the lists after each change.
func TestListsFollowEveryChange(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"embedded": {Embedded()}, "one process": nil, "two processes": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			processes := []*Resources{New(s, opts...)}
			if name == "two processes" {
				processes = append(processes, New(s))
			}
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					p := &listWriter{t: t, own: processes[w%len(processes)], all: processes, rand: rand.New(rand.NewPCG(uint64(w), 1)), name: fmt.Sprint("w", w)}
					for range 60 {
						p.step()
					}
				})
			}
			wg.Wait()
			for _, r := range processes {
				for _, sc := range []store.Scope{scopeA, scopeB} {
					for _, archived := range []bool{false, true} {
						got, err := r.list(context.Background(), sc, widget, archived)
						if err != nil {
							t.Fatal(err)
						}
						want, err := r.listNow(context.Background(), sc, widget, archived)
						if err != nil {
							t.Fatal(err)
						}
						if names(got) != names(want) {
							t.Errorf("%s archived %v:\ngot  %s\nwant %s", sc, archived, names(got), names(want))
						}
					}
				}
			}
		})
	}
}

// listWriter changes its own records.
type listWriter struct {
	t    *testing.T
	own  *Resources
	all  []*Resources
	rand *rand.Rand
	name string
	mine []Record
	n    int
}

func (p *listWriter) step() {
	p.n++
	what := p.rand.IntN(4)
	if len(p.mine) == 0 {
		what = 0
	}
	var rec Record
	at := 0
	if what != 0 {
		at = p.rand.IntN(len(p.mine))
		rec = p.mine[at]
	} else {
		rec = Record{Scope: []store.Scope{scopeA, scopeB}[p.rand.IntN(2)], Kind: widget, Status: "active"}
	}
	rec.Name = fmt.Sprint(p.name, "-", p.n)
	err := p.own.Change(context.Background(), rec.Scope, func(tx *Tx) error {
		if what == 0 {
			rec = Record{Scope: rec.Scope, Kind: widget, Status: "active", Name: rec.Name}
			return tx.Create(&rec)
		}
		now, ok, err := tx.Get(rec.Scope, widget, rec.ID)
		if err != nil || !ok {
			return fmt.Errorf("%v %w", ok, err)
		}
		now.Name = rec.Name
		rec = now
		switch what {
		case 1:
			return tx.Update(&rec)
		case 2:
			return tx.Archive(&rec)
		}
		return tx.Delete(&rec)
	})
	if err != nil {
		p.t.Error(err)
		return
	}
	switch what {
	case 0:
		p.mine = append(p.mine, rec)
	case 3:
		p.mine = slices.Delete(p.mine, at, at+1)
	default:
		p.mine[at] = rec
	}
	p.look(rec, what == 3)
}

// look reads the lists in every process.
func (p *listWriter) look(rec Record, gone bool) {
	for i, r := range p.all {
		for _, archived := range []bool{false, true} {
			rows, err := r.list(context.Background(), rec.Scope, widget, archived)
			if err != nil {
				p.t.Error(err)
				return
			}
			n := slices.IndexFunc(rows, func(row Row) bool { return row.ID == rec.ID })
			if there := !gone && archived == rec.Archived(); (n >= 0) != there || there && rows[n].Name != rec.Name {
				p.t.Errorf("process %d, archived %v, gone %v: %d %s, want %s", i, archived, gone, n, names(rows), rec.Name)
			}
		}
	}
}
