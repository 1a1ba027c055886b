package ledger

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Fair share. The callers of a shared subject (a workspace, a bucket of a policy, an
// integration, a provider) share its requests of a minute or an hour. The share of each
// is the limit divided by the number of callers of this window and the one before. Below
// its share a caller is admitted while the limit has capacity. Above it, a caller only
// gets capacity that is not reserved for others below theirs. The reservation for each of
// them shrinks with the time left in the window, so that a steady caller gets its share
// and nothing is lost if others send no requests.
//
// A row counts its callers in fairSlots slots, by a hash of their ids; two callers in one
// slot share a share. The limit itself holds regardless of the shares, and a caller's own
// share is a condition of the same update. Only the reservation for others is computed
// from the row as this process last read it.
const fairSlots = 63 // bits of an int64

// seenEvery is the number of requests after which a process reads a shared row again,
// unless it is rejected before or begins a window: each read copies the row.
const seenEvery = 16

func (c *compiled) saw(row store.Item) { c.seen.Store(&row) }

// fairLength is the length of the longest window that is shared, in seconds. The callers
// of one morning do not predict those of a week.
const fairLength = 60 * 60

// fairSteps is the maximum number of retries per window suggested to a caller above its
// share.
const fairSteps = 20

// slotOf returns the slot of a caller.
func slotOf(caller string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(caller)) // does not fail
	return strconv.Itoa(int(h.Sum32() % fairSlots))
}

// fair reports whether a limit of a subject of this kind is shared.
func fair(k Kind, r RateLimit, u unitRow) bool {
	if r.Type != Requests || u.length > fairLength || u.length < 60 {
		return false
	}
	return k == Workspace || k == Policy || k == Integration || k == Provider
}

// division is the result of sharing a window.
type division struct {
	share int64 // of each caller
	held  int64 // for callers other than the present one
}

// divide computes the share of the caller in slot, and the reservation for others. was
// are the slots of the window before.
func divide(n *counter, by store.Map, was int64, slot string, left int64) division {
	mine, _ := strconv.Atoi(slot)
	counts, now := countsOf(by)
	active := was | now | 1<<mine
	callers := int64(bits.OnesCount64(uint64(active)))
	out := division{share: max(n.Value/callers, 1)}
	// The expected demand of a steady caller, limited to the rest of its share. At the
	// end of the window nothing is reserved.
	steady := float64(out.share) * float64(max(left, 0)) / float64(n.unit.length)
	held := 0.0
	for i, used := range counts {
		if active&(1<<i) != 0 && i != mine {
			held += min(float64(max(out.share-used, 0)), steady)
		}
	}
	out.held = int64(held)
	return out
}

// countsOf returns the counts of a row's map, and the slots that have one.
func countsOf(by store.Map) (counts [fairSlots]int64, slots int64) {
	for s, v := range by {
		if i, err := strconv.Atoi(s); err == nil && i >= 0 && i < fairSlots {
			counts[i], _ = v.(int64)
			slots |= 1 << i
		}
	}
	return counts, slots
}

// begin sets the initial state of a shared window. row is that of the window before, or
// of an earlier one.
func (n *hold) begin(u *store.Update, row store.Item, slot string) {
	was := int64(0)
	if row.Int(n.id.Attr) == n.window-n.unit.length {
		_, was = countsOf(row.Map(n.by.Attr))
	}
	u.Set = append(u.Set, store.Assign{Path: n.by, Value: store.Map{slot: n.amount}}, store.Assign{Path: n.was, Value: was})
}

// room returns the maximum count of the window at which the caller is admitted; it counts
// the caller in its slot.
func (n *hold) room(u *store.Update, row store.Item, slot string, now int64) (most int64) {
	most = n.Value - n.amount
	by, divided := row[n.by.Attr].(store.Map)
	if !divided { // the window began before it was shared
		u.Set = append(u.Set, store.Assign{Path: n.by, Value: store.Map{slot: n.amount}}, store.Assign{Path: n.was, Value: int64(0)})
		u.If = append(u.If, store.IfMissing(n.by))
		return most
	}
	d := divide(n.counter, by, row.Int(n.was.Attr), slot, n.window+n.unit.length-now)
	own := store.In(n.by.Attr, slot)
	mine, known := by[slot].(int64)
	switch {
	case mine+n.amount > d.share:
		most -= d.held
		u.If = append(u.If, store.IfHas(n.by))
	case known:
		u.If = append(u.If, store.IfAtMost(own, d.share-n.amount))
	default:
		u.If = append(u.If, store.IfHas(n.by), store.IfMissing(own))
	}
	u.Add = append(u.Add, store.Increment{Path: own, By: n.amount})
	return most
}

// scarce returns the rejection of a caller if the remaining capacity is reserved for
// others. Some of the reservation becomes free soon.
func (l *rates) scarce(s *Subject, n *hold) *fault.Fault {
	f := l.rateFault(s, n.counter, n.window)
	f.RetryAfter = min(f.RetryAfter, max(time.Duration(n.unit.length/fairSteps)*time.Second, time.Second))
	f.Message = fmt.Sprintf("Rate limit of %s is scarce: this caller has had its share of %s, the rest is held for others; try again in %d s",
		s.name(), n.RateLimit, int64(f.RetryAfter/time.Second))
	return f
}
