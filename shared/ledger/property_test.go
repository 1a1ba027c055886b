package ledger

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
)

// world is a few budgeted subjects, and processes that use and change them.
type world struct {
	m      *memory
	story  *schedule
	clock  *hands
	split  int
	change bool // limits change, periods end, charges exceed their bounds
	late   bool // charges without a reservation, and reservations that outlive their requests

	mu          sync.Mutex
	budgets     map[string][]UsageLimit
	version     int64
	settled     map[string]amounts // request|subject -> what it was settled at, attempted
	unforeseen  map[string]bool    // settled without an entry: a crash may lose it
	unconfirmed map[string]map[string]amounts
	turns       map[turn]string // the entry reported of it
	twice       error           // two were
	crowd       int             // most open entries of one head
	rows        int
	refused     int
	seen        int // writes at the last look
	heads       map[string]store.Key
	looked      map[string]int // writes of the head's rows at the last look
	totals      map[string]totals
	forcing     map[string]bool // actors that charge spent amounts, which need no capacity
	lateCharges int
	lateHolds   int
}

// turn is one of the entries of a request|subject, as its record knows it.
type turn struct {
	id string
	n  int
}

func newWorld(random *rand.Rand, split int, change, late bool) *world {
	w := &world{
		m: newMemory(), clock: clockAt("2026-11-27T23:50:00Z"), split: split, change: change, late: late,
		totals: map[string]totals{}, forcing: map[string]bool{},
		settled: map[string]amounts{}, unforeseen: map[string]bool{}, unconfirmed: map[string]map[string]amounts{}, turns: map[turn]string{}, budgets: map[string][]UsageLimit{},
		heads: map[string]store.Key{}, looked: map[string]int{},
	}
	for _, name := range []string{"key", "workspace", "policy"} {
		w.heads[name] = (&Subject{Scope: tenant, Kind: name, ID: name}).derive().head
	}
	limit := func(m Measure, n int64) UsageLimit {
		u := UsageLimit{Type: m, CreditLimit: n, AlertThreshold: n / 2}
		if change && random.IntN(2) == 0 {
			u.Cadence = Monthly
		}
		u.Prepare(nil, w.clock.now())
		return u
	}
	w.budgets["key"] = []UsageLimit{limit(Cost, 100+random.Int64N(400))}
	w.budgets["workspace"] = []UsageLimit{limit(Cost, 100+random.Int64N(800)), limit(Tokens, 200+random.Int64N(800))}
	w.budgets["policy"] = []UsageLimit{limit(Requests, 3+random.Int64N(20))}
	return w
}

// draws returns a separate random sequence for each head, so that the order of a request's
// subjects does not matter.
func draws(random *rand.Rand) func(store.Key, int) int {
	var mu sync.Mutex
	seed, drawn := random.Uint64(), map[store.Key]uint64{}
	return func(head store.Key, n int) int {
		mu.Lock()
		defer mu.Unlock()
		drawn[head]++
		h := fnv.New64a()
		fmt.Fprint(h, seed, head, drawn[head])
		return int(h.Sum64() % uint64(n))
	}
}

// process returns a separate ledger, with a clock that is up to ten minutes off.
func (w *world) process(random *rand.Rand) *Ledger {
	off := time.Duration(random.IntN(21)-10) * time.Minute
	l := New(w.m, w.clock.plus(off), Hooks{
		Unconfirmed: func(ctx context.Context, u Unconfirmed) error {
			if a := actorOf(ctx); a != nil && a.dead {
				return errCrashed
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			id, a := u.RequestID+"|"+u.ID, u.charged
			if first, again := w.turns[turn{id, u.Turn}]; again && first != u.Entry {
				w.twice = fmt.Errorf("two entries of turn %d of %s: one record, two charges", u.Turn, id)
			}
			w.turns[turn{id, u.Turn}] = u.Entry
			if w.unconfirmed[id] == nil {
				w.unconfirmed[id] = map[string]amounts{}
			}
			w.unconfirmed[id][u.Entry] = a // a second report of one entry is the same
			return nil
		},
		Alert: func(context.Context, Alert) error { return nil },
	})
	l.rows.splitAbove = w.split
	if c := w.story.crew; c != nil {
		l.base.each = c.each
	}
	l.rows.spread = draws(random)
	return l
}

func (w *world) subject(name string) *Subject {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &Subject{Scope: tenant, Kind: name, ID: name, Budgets: w.budgets[name], Revision: w.version}
}

// request is one life of a request: reserve, perhaps raise, settle in one of
// many ways, or not at all.
func (w *world) request(ctx context.Context, l *Ledger, random *rand.Rand, id string) {
	var subjects []*Subject
	for _, name := range []string{"key", "workspace", "policy"} {
		if random.IntN(3) > 0 {
			subjects = append(subjects, w.subject(name))
		}
	}
	if w.late && random.IntN(4) == 0 {
		w.charge(ctx, l, random, id, subjects)
		return
	}
	b := Bound{Cost: pricing.NanoDollars(random.IntN(60)), Tokens: random.Int64N(60), Priced: true}
	r, err := l.Reserve(ctx, id, subjects, b)
	if err != nil {
		if fault.Is(err, fault.BudgetExhausted) {
			w.mu.Lock()
			w.refused++
			w.mu.Unlock()
		}
		return
	}
	if r == nil {
		return
	}
	for range random.IntN(3) {
		higher := Bound{Cost: b.Cost + pricing.NanoDollars(random.IntN(30)), Tokens: b.Tokens + random.Int64N(30), Priced: true}
		if r.Raise(ctx, higher) == nil {
			b = higher
		}
	}
	actual := amounts{random.Int64N(int64(b.Cost) + 1), random.Int64N(b.Tokens + 1), 1}
	if w.change && random.IntN(4) == 0 {
		actual[slotCost] += 20
	}
	if random.IntN(8) == 0 {
		_ = r.Release(ctx)
		return
	}
	if random.IntN(8) == 0 {
		return // killed before it settled
	}
	if w.late && random.IntN(3) == 0 {
		w.hold(ctx, l, random, id, r, actual)
		return
	}
	defer w.forces(ctx)()
	w.settles(id, r, actual)
	for range 1 + random.IntN(2) {
		_ = r.Settle(ctx, pricing.NanoDollars(actual[slotCost]), actual[slotTokens])
	}
	for _, e := range r.Entries() {
		for range random.IntN(3) {
			_ = l.SettleEntry(ctx, e)
		}
	}
}

// charge records amounts spent without a reservation: a late response, a transcript.
func (w *world) charge(ctx context.Context, l *Ledger, random *rand.Rand, id string, subjects []*Subject) {
	actual := amounts{random.Int64N(90), random.Int64N(90), 1}
	r := l.reservation(id, subjects)
	if r == nil {
		return
	}
	defer w.forces(ctx)()
	w.settles(id, r, actual)
	w.mu.Lock()
	w.lateCharges++
	w.mu.Unlock()
	r, _ = l.Charge(ctx, id, subjects, Used{pricing.NanoDollars(actual[slotCost]), actual[slotTokens]})
	if random.IntN(2) == 0 {
		_ = r.Settle(ctx, pricing.NanoDollars(actual[slotCost]), actual[slotTokens])
	}
	for _, e := range r.Entries() {
		_ = l.SettleEntry(ctx, e)
	}
}

// hold is work that continues at a provider after its request: a background response, a batch.
// It is settled at some time, once or more, by this process or another, or never.
func (w *world) hold(ctx context.Context, l *Ledger, random *rand.Rand, id string, r *Reservation, actual amounts) {
	defer w.forces(ctx)()
	held, _ := r.Hold(ctx, w.clock.now().Add(time.Duration(random.IntN(90))*time.Minute), Used{})
	if random.IntN(4) == 0 {
		return
	}
	w.clock.add(time.Duration(random.IntN(2400)) * time.Second)
	w.settles(id, r, actual)
	w.mu.Lock()
	w.lateHolds++
	for _, p := range r.parts {
		if p.id == "" { // the store did not let it be held
			delete(w.settled, id+"|"+p.subject.ID)
		}
	}
	w.mu.Unlock()
	if random.IntN(2) == 0 {
		l = w.process(random)
	}
	for range 1 + random.IntN(2) {
		entries, _ := l.SettleHeld(ctx, held, Used{pricing.NanoDollars(actual[slotCost]), actual[slotTokens]})
		for _, e := range entries {
			for range random.IntN(2) {
				_ = l.SettleEntry(ctx, e)
			}
		}
	}
	_ = r.Settle(ctx, 1000, 1000) // of a reservation that is held: nothing
}

// forces marks the actor as one that needs no capacity.
func (w *world) forces(ctx context.Context) (end func()) {
	name := ""
	if a := actorOf(ctx); a != nil {
		name = a.name
	}
	set := func(on bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.forcing[name] = on
	}
	set(true)
	return func() { set(false) }
}

// settles notes what a request is about to be settled at.
func (w *world) settles(id string, r *Reservation, actual amounts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range r.parts {
		counted := actual // without an entry it is charged by the limits that it meets then
		for i := range counted {
			if p.id != "" && p.entry.slots&(1<<i) == 0 {
				counted[i] = 0
			}
		}
		w.settled[id+"|"+p.subject.ID] = counted
		w.unforeseen[id+"|"+p.subject.ID] = p.id == ""
	}
}

// meddle is what administrators, schedules and readers do meanwhile.
func (w *world) meddle(ctx context.Context, l *Ledger, random *rand.Rand) {
	name := []string{"key", "workspace", "policy"}[random.IntN(3)]
	switch n := random.IntN(8); {
	case n == 0:
		_, _ = l.RepairAll(ctx)
	case n == 1:
		_, _ = l.State(ctx, w.subject(name))
	case n == 2:
		w.clock.add(time.Duration(random.IntN(600)) * time.Second)
	case !w.change:
	case n == 3:
		_ = l.Reset(ctx, w.subject(name))
	case n == 4:
		w.mu.Lock()
		u := append([]UsageLimit(nil), w.budgets[name]...)
		u[0].CreditLimit = 1 + random.Int64N(1000)
		if random.IntN(3) == 0 {
			u[0].ResetUsage(w.clock.now())
		}
		if len(u) > 1 && random.IntN(2) == 0 {
			u = u[:1]
		} else if name == "workspace" && len(u) == 1 {
			u = append(u, UsageLimit{Type: Tokens, CreditLimit: 500, SetAt: w.clock.now()})
		}
		w.budgets[name] = u
		w.version++
		w.mu.Unlock()
	case n == 5:
		_ = l.Apply(ctx, w.subject(name))
	}
}

// balance checks what holds after each single operation.
func (w *world) balance() error {
	w.m.mu.Lock()
	seen := w.m.done
	if seen != w.seen {
		w.rows = max(w.rows, w.m.size(store.Spend))
	}
	w.m.mu.Unlock()
	if seen == w.seen {
		return nil
	}
	w.seen = seen
	for _, name := range []string{"key", "workspace", "policy"} {
		t, found := w.m.totals(w.heads[name])
		if !found || t.writes == w.looked[name] {
			continue
		}
		w.looked[name] = t.writes
		w.crowd = max(w.crowd, t.entries)
		if err := w.admitted(name, w.totals[name], t); err != nil {
			return err
		}
		w.totals[name] = t
		for i, m := range slotMeasure {
			if t.available[i] != t.limit[i]-t.spent[i]-t.open[i] {
				return fmt.Errorf("%s %s: available %d = limit %d - spent %d - open %d does not hold", name, m, t.available[i], t.limit[i], t.spent[i], t.open[i])
			}
			if t.spent[i] < 0 {
				return fmt.Errorf("%s %s: %d is spent", name, m, t.spent[i])
			}
			if !w.change && !w.late && t.least[i] < 0 {
				return fmt.Errorf("%s %s: a row has %d available", name, m, t.least[i])
			}
		}
	}
	return nil
}

// admitted checks that an entry was only added while the budget had capacity for it, unless the
// entry is a charge.
func (w *world) admitted(name string, before, now totals) error {
	if w.change || before.rows != 1 || now.rows != 1 || now.entries != before.entries+1 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.story.log) - 1; last < 0 || w.forcing[w.story.log[last].actor] {
		return nil
	}
	for i, m := range slotMeasure {
		if taken := before.available[i] - now.available[i]; taken > 0 && taken > before.available[i] {
			return fmt.Errorf("%s %s: a request took %d of %d", name, m, taken, before.available[i])
		}
	}
	return nil
}

// audit compares, at the end, the charges with the requests: what they settled, or what repair
// reported, whichever the entry met first.
func (w *world) audit() error {
	if w.twice != nil {
		return w.twice
	}
	for _, name := range []string{"key", "workspace", "policy"} {
		t, found := w.m.totals(w.heads[name])
		if !found {
			continue
		}
		if t.entries != 0 {
			return fmt.Errorf("%s: %d entries are open after repair", name, t.entries)
		}
		var least, most amounts
		ids := map[string]bool{}
		for id := range w.settled {
			ids[id] = true
		}
		for id := range w.unconfirmed {
			ids[id] = true
		}
		for id := range ids {
			if !strings.HasSuffix(id, "|"+name) {
				continue
			}
			var repaired amounts
			for _, a := range w.unconfirmed[id] {
				repaired = sum(repaired, a)
			}
			settled := w.settled[id]
			for i := range settled {
				if len(w.unconfirmed[id]) == 0 {
					repaired[i] = settled[i]
				}
				// A raise that noticed the repair lets the rest be settled.
				if !w.unforeseen[id] {
					least[i] += repaired[i]
				}
				most[i] += max(repaired[i], settled[i])
			}
		}
		charged := sum(t.spent, t.rolled)
		for i, m := range slotMeasure {
			if charged[i] < least[i] || charged[i] > most[i] {
				return fmt.Errorf("%s %s: charged %d, the requests say %d to %d", name, m, charged[i], least[i], most[i])
			}
		}
	}
	return nil
}

// play runs one world to its end, with the crew or, without one, goroutines.
func (p setting) play(t *testing.T, c *crew) (*world, error) {
	random := rand.New(rand.NewPCG(p.seed, 1))
	w := newWorld(random, p.splitAt, p.change, p.late)
	s := &schedule{m: w.m, random: random, faults: p.faults, check: w.balance, crew: c}
	w.story = s
	run := map[string]func(context.Context){}
	for i := range p.actors {
		name := fmt.Sprintf("p%d", i)
		own := rand.New(rand.NewPCG(p.seed, uint64(i)+2))
		l := w.process(own)
		run[name] = func(ctx context.Context) {
			for n := range p.requests {
				w.request(ctx, l, own, fmt.Sprintf("%s-%d", name, n))
				if own.IntN(3) == 0 {
					w.meddle(ctx, l, own)
				}
			}
		}
	}
	if err := s.run(t, run); err != nil {
		return w, fmt.Errorf("%w after\n%s", err, s.story())
	}
	w.clock.add(3 * SettleAfter)
	if p.late {
		w.clock.add(5 * SettleAfter)
	}
	w.story.crew = nil
	l := w.process(random)
	for range 2 { // the second pass finds entries that crashed under repair
		if _, err := l.RepairAll(context.Background()); err != nil {
			return w, err
		}
	}
	if err := w.balance(); err != nil {
		return w, err
	}
	return w, w.audit()
}

func TestBudgetsBalanceUnderAnyInterleaving(t *testing.T) {
	for name, kind := range map[string]struct{ change, late bool }{
		"bounded requests, fixed limits": {}, "changing limits, periods, overruns": {change: true},
		"late charges, fixed limits": {late: true}, "late charges, changing limits": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			crowd, rows, refused, repaired, charges, holds := 0, 0, 0, 0, 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				s := setting{rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 6).Draw(rt, "processes"),
					rapid.IntRange(1, 8).Draw(rt, "requests"), rapid.SampledFrom([]int{0, 5, 30}).Draw(rt, "faults"),
					rapid.SampledFrom([]int{1, 3, SplitAbove}).Draw(rt, "split above"), kind.change, kind.late}
				w, err := s.play(t, nil)
				if err != nil {
					rt.Fatal(err)
				}
				crowd, rows, refused, repaired = max(crowd, w.crowd), max(rows, w.rows), refused+w.refused, repaired+len(w.unconfirmed)
				charges, holds = charges+w.lateCharges, holds+w.lateHolds
			})
			if kind.late && (charges == 0 || holds == 0) {
				t.Errorf("%d late charges, %d held reservations", charges, holds)
			}
			if crowd < 4 || rows < 16 || refused == 0 || repaired == 0 {
				t.Errorf("the worlds were too tame: %d open entries at most, %d rows, %d refusals, %d repairs", crowd, rows, refused, repaired)
			}
		})
	}
}
