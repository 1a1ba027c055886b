package ledger

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/store"
)

// Attributes of a spend row. The first row of a subject is its head (sort key
// "<bucket>#0"), the others are its shards ("<bucket>#1"...); shards and rows
// are attributes of the head only.
var (
	attrPlan   = store.At("plan")   // text of the plan that the row follows
	attrRev    = store.At("rev")    // its revision
	attrResets = store.At("resets") // the earliest of the slots' resets
	attrShards = store.At("shards") // rows that new entries are spread over
	attrRows   = store.At("rows")   // number of rows; never less than shards
	attrOpen   = "open"
	attrTrace  = "repaired:" // prefix of attributes that trace repaired entries; see trace.go
)

// slotAttrs are the attributes of one slot.
type slotAttrs struct {
	available store.Path
	spent     store.Path
	resets    store.Path // the next reset, Unix seconds
	last      store.Path // the last reset, Unix milliseconds; absent if none yet
	flags     store.Path // alerts sent in this period; head only
	demand    store.Path // need of the last admitted request; see exhausted
	rejected  store.Path // need of the first request rejected in this period
}

var slotAttr = func() (a [numSlots]slotAttrs) {
	for i, m := range slotMeasure {
		at := func(name string) store.Path { return store.At(string(m) + "_" + name) }
		a[i] = slotAttrs{at("available"), at("spent"), at("resets"), at("last"), at("flags"), at("asked"), at("refused")}
	}
	return a
}()

const (
	flagThreshold = 1
	flagExhausted = 2
)

// slotState is one slot of one row.
type slotState struct {
	available, spent int64
	resets           int64
	last             int64 // Unix milliseconds
	flags            int64
	demand           demand
}

func readSlot(it store.Item, i int) (s slotState, ok bool) {
	a := &slotAttr[i]
	if _, ok = it[a.available.Attr]; !ok {
		return s, false
	}
	return slotState{
		available: it.Int(a.available.Attr), spent: it.Int(a.spent.Attr), resets: it.Int(a.resets.Attr),
		last: it.Int(a.last.Attr), flags: it.Int(a.flags.Attr), demand: readDemand(it, i),
	}, true
}

func availableOf(it store.Item) (a amounts) {
	for i := range a {
		a[i] = it.Int(slotAttr[i].available.Attr)
	}
	return a
}

func rowPlan(it store.Item) *plan { return parsePlan(it.String(attrPlan.Attr), it.Int(attrRev.Attr)) }

func isHead(k store.Key) bool { return strings.HasSuffix(k.SK(), "#0") }

// shardKey returns the key of row i of the head's subject; 0 is the head itself.
func shardKey(head store.Key, i int) store.Key {
	return head.Partition().Key(strings.TrimSuffix(head.SK(), "0") + strconv.Itoa(i))
}

// headOf returns the head of the row's subject.
func headOf(k store.Key) store.Key {
	sk := k.SK()
	return k.Partition().Key(sk[:strings.LastIndexByte(sk, '#')], "0")
}

// newRow returns a row under the plan at now: a head with all of the budget, or an empty
// shard.
func newRow(key store.Key, p *plan, owner store.Item, now time.Time) store.Row {
	head := isHead(key)
	it := store.Item{attrPlan.Attr: p.text, attrRev.Attr: p.rev, attrOpen: store.Map{}}
	for _, name := range ownerAttrs {
		if v, ok := owner[name]; ok {
			it[name] = v
		}
	}
	if head {
		it[attrShards.Attr], it[attrRows.Attr] = int64(1), int64(1)
	}
	earliest := int64(never)
	for i := range p.slots {
		s := &p.slots[i]
		if !s.on {
			continue
		}
		a := &slotAttr[i]
		resets := s.nextReset(now)
		earliest = min(earliest, resets)
		it[a.available.Attr], it[a.spent.Attr], it[a.resets.Attr] = int64(0), int64(0), resets
		if head {
			it[a.available.Attr], it[a.flags.Attr] = s.limit, int64(0)
		}
		if s.resetAt > 0 {
			it[a.last.Attr] = s.resetAt
		}
	}
	it[attrResets.Attr] = earliest
	return store.Row{Key: key, Item: it}
}

// ownerAttrs identify the subject in each row, for alerts and repairs.
var ownerAttrs = []string{"org", "workspace", "kind", "id", "bucket"}

func (s *Subject) owner() store.Item {
	it := store.Item{"org": s.Scope.Org, "kind": s.Kind, "id": s.ID}
	if s.Scope.Workspace != "" {
		it["workspace"] = s.Scope.Workspace
	}
	if s.Bucket != "" {
		it["bucket"] = s.Bucket
	}
	return it
}

// glance is the relevant state of a row that a request has just written.
type glance struct {
	several   bool // the subject has further rows
	overdrawn bool // the available amount of a budget is negative

	// Of an update that opens or raises an entry.
	shards  int64 // of a head
	open    int   // number of open entries
	overdue bool  // an entry is past due

	alert bool // an alert may be due; of a settlement
}

// writing is an update of a row and the glance at its result, if it is a spend row.
// Requests make several, so they are reused.
type writing struct {
	u     store.Update
	after glance

	now     int64         // of an update that opens or raises an entry; otherwise 0
	quiet   *atomic.Int64 // see compiled.quiet; nil if unknown
	alerts  bool          // this is a settlement, and its alerts are needed
	charged amounts       // the settlement's addition to the row's spending
	plan    *plan         // that the row probably follows; nil if unknown

	look   func(store.Item) // see
	set    [1 + numSlots]store.Assign
	add    [2 * numSlots]store.Increment
	remove [1]store.Path
	conds  [3 + numSlots]store.Cond
}

var writings = sync.Pool{New: func() any {
	w := &writing{}
	w.look = w.see
	return w
}}

// newWriting returns an empty update.
func newWriting(key store.Key) *writing {
	w := writings.Get().(*writing)
	w.u = store.Update{Key: key, Set: w.set[:0], Add: w.add[:0], Remove: w.remove[:0], If: w.conds[:0], Look: w.look}
	return w
}

// write executes the update. w must not be used afterwards.
func (w *writing) write(ctx context.Context, t store.Table) (after glance, row store.Item, err error) {
	_, row, err = t.Update(ctx, w.u)
	if err != nil { // the store may still use it
		return glance{}, nil, err
	}
	after = w.after
	clear(w.u.Set) // release references
	clear(w.u.If)
	w.u, w.plan, w.quiet, w.now, w.alerts, w.after = store.Update{}, nil, nil, 0, false, glance{}
	writings.Put(w)
	return after, row, nil
}

// opens marks an update that opens or raises the entry of a part.
func (w *writing) opens(p *part, now time.Time) {
	w.now = now.Unix()
	if c := p.subject.derive(); p.key == c.head {
		w.quiet = &c.quiet
	}
}

// settle sets the update's addition to the row's spending. Nothing else makes an alert
// due. p is the plan that the row probably follows, if it is known.
func (w *writing) settle(l *alarms, p *plan, charged amounts) {
	w.plan, w.alerts, w.charged = p, l.hooks.Alert != nil, charged
}

func (w *writing) see(row store.Item) {
	if row == nil {
		return
	}
	w.after = glance{several: !isHead(w.u.Key) || row.Int(attrRows.Attr) > 1}
	w.after.overdrawn = w.after.several && overdrawn(row)
	if w.now > 0 {
		open := row.Map(attrOpen)
		w.after.shards, w.after.open, w.after.overdue = row.Int(attrShards.Attr), len(open), w.overdue(open)
	}
	if !w.alerts {
		return
	}
	if w.after.several {
		w.after.alert = reviewDue(row, w.charged)
		return
	}
	p := w.plan
	if p == nil || p.text != row.String(attrPlan.Attr) {
		p = rowPlan(row)
	}
	for i := range p.slots {
		if s := &p.slots[i]; s.on {
			w.after.alert = w.after.alert || s.due(row.Int(slotAttr[i].spent.Attr), readDemand(row, i))&^row.Int(slotAttr[i].flags.Attr) != 0
		}
	}
}

// overdue reports whether an entry is past due. It skips the check while none can be.
func (w *writing) overdue(open store.Map) bool {
	if w.quiet != nil && w.now < w.quiet.Load() {
		return false
	}
	next := w.now + int64(SettleAfter/time.Second)/2
	for _, v := range open {
		value, _ := v.([]byte)
		if entryPast(value, w.now) {
			return true
		}
		next = min(next, entryDue(value))
	}
	if w.quiet != nil {
		w.quiet.Store(next)
	}
	return false
}
