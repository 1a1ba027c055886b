package ledger

import (
	"strconv"
	"strings"
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
	asked     store.Path // need of the last admitted request; see exhausted
	refused   store.Path // need of the first request rejected in this period
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
	ask              demand
}

func readSlot(it store.Item, i int) (s slotState, ok bool) {
	a := &slotAttr[i]
	if _, ok = it[a.available.Attr]; !ok {
		return s, false
	}
	return slotState{
		available: it.Int(a.available.Attr), spent: it.Int(a.spent.Attr), resets: it.Int(a.resets.Attr),
		last: it.Int(a.last.Attr), flags: it.Int(a.flags.Attr), ask: readAsk(it, i),
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
