package ledger

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// counter is one rate limit with the attributes it counts in.
type counter struct {
	RateLimit
	unit unitRow
	id   store.Path // start of the window, Unix seconds
	n    store.Path // requests or tokens in it
	fair bool       // callers share it
	by   store.Path // counts of callers, by slot, and
	was  store.Path // slots of the window before
}

func newCounter(k Kind, r RateLimit) (counter, bool) {
	u, ok := units[r.Unit]
	name := string(r.Unit)
	if r.Type == Tokens {
		name += "_tokens"
	}
	return counter{RateLimit: r, unit: u, id: store.At(name + "_id"), n: store.At(name + "_n"),
		fair: fair(k, r, u), by: store.At(name + "_by"), was: store.At(name + "_was")}, ok
}

// maxSkew is the maximum by which another process's clock may be ahead. A window that
// starts later is ignored.
const maxSkew = 10 * 60

// current returns the window to count in: that of now, or the later one that the row is
// in already, because another process's clock is ahead. Windows of a row never go back,
// otherwise the same window could be filled twice.
func (c *counter) current(now int64, it store.Item) int64 {
	w := c.unit.window(now)
	if have := it.Int(c.id.Attr); have > w && have <= w+maxSkew+c.unit.length {
		return have
	}
	return w
}

// counted is what one subject counted for a request.
type counted struct {
	subject *Subject
	key     store.Key
	slot    string // of the caller, in shared windows
	holds   []hold
	err     error // why nothing was counted

	few [2]hold // memory of holds
}

// of makes h that of a subject.
func (h *counted) of(s *Subject) *counted {
	h.subject, h.key = s, s.derive().rate
	return h
}

type hold struct {
	*counter
	window int64
	amount int64
	scarce bool // it has capacity, which is reserved for others
}

// take counts in all windows of the subject or in none. want is 1 for requests, the bound
// for tokens. The error is a fault if a window is full, another if the store failed.
//
// The first update guesses that the row is in the windows of now; when its condition
// fails, the returned row shows which windows are full and which are to be rolled. If
// callers share a window, the row that this process last read replaces the guess, and is
// read again before a rejection.
func (l *rates) take(ctx context.Context, h *counted, caller string, m Measure, want int64) {
	h.err = l.takeIn(ctx, h, caller, m, want)
}

func (l *rates) takeIn(ctx context.Context, h *counted, caller string, m Measure, want int64) error {
	s := h.subject
	c := s.derive()
	h.holds = h.few[:0]
	for i := range c.counts {
		if c.counts[i].Type == m {
			h.holds = append(h.holds, hold{counter: &c.counts[i]})
			if c.counts[i].fair && h.slot == "" {
				h.slot = slotOf(caller)
			}
		}
	}
	var row store.Item
	old := false // the row may be outdated
	if h.slot != "" {
		if seen := c.seen.Load(); seen != nil {
			row, old = *seen, true
		}
	}
	for try := range attempts {
		w, now := newWriting(h.key), l.clock()
		full := h.count(&w.u, row, try == 0 && h.slot == "", now.Unix(), want)
		if full != nil && old {
			var err error
			if row, _, err = l.rate.Get(ctx, h.key, true); err != nil {
				return err
			}
			old = false
			w = newWriting(h.key)
			full = h.count(&w.u, row, false, now.Unix(), want)
		}
		if full != nil && full.scarce {
			return l.scarce(s, full)
		}
		if full != nil {
			f := l.rateFault(s, full.counter, full.window)
			f.Limit.Needed = want
			return f
		}
		if len(w.u.Set) > 0 {
			w.u.Expires = c.rateExpiry(now.Unix())
			if s.Bucket != "" {
				w.u.Set = append(w.u.Set, store.Assign{Path: attrBucket, Value: s.Bucket})
			}
		}
		w.u.Look = func(store.Item) {}
		fresh := h.slot != "" && (len(w.u.Set) > 0 || c.uses.Add(1)%seenEvery == 0)
		if fresh {
			w.u.Look = nil
		}
		_, after, err := w.write(ctx, l.rate)
		if err == nil {
			if !fresh {
				after = row
			}
			if h.slot != "" && !old {
				c.saw(after)
			}
			return nil
		}
		failed, ok := store.AsCondition(err)
		if !ok {
			return err
		}
		row, old = failed.Current, false
	}
	return store.ErrContended
}

// count adds the counts of every window to the update, given the row as it is or a guess.
// full is the full window that ends last.
func (h *counted) count(u *store.Update, row store.Item, guess bool, now, want int64) (full *hold) {
	for i := range h.holds {
		n := &h.holds[i]
		n.window = n.current(now, row)
		old, known := row[n.id.Attr]
		same, used := guess || known && old == n.window, int64(0)
		if same {
			used = row.Int(n.n.Attr)
		}
		if n.amount = want; want > n.Value { // see Admission.ReserveTokens
			n.amount = max(n.Value-used, 1)
		}
		divided := n.fair && same && !guess
		most := n.Value - n.amount
		if divided {
			most = n.capacity(u, row, h.slot, now)
			n.scarce = used > most && used+n.amount <= n.Value
		}
		switch {
		case used > most:
			if full == nil || n.window+n.unit.length > full.window+full.unit.length {
				full = n
			}
		case same:
			u.Add = append(u.Add, store.Increment{Path: n.n, By: n.amount})
			u.If = append(u.If, store.IfEqual(n.id, n.window), store.IfAtMost(n.n, most))
		default:
			u.Set = append(u.Set, store.Assign{Path: n.id, Value: n.window}, store.Assign{Path: n.n, Value: n.amount})
			if n.fair {
				n.begin(u, row, h.slot)
			}
			if known {
				u.If = append(u.If, store.IfEqual(n.id, old))
			} else {
				u.If = append(u.If, store.IfMissing(n.id))
			}
		}
	}
	return full
}

// rateExpiry is a day after the last window of the row has ended.
func (c *compiled) rateExpiry(now int64) time.Time {
	last := now
	for _, n := range c.counts {
		last = max(last, n.unit.window(now)+n.unit.length)
	}
	return time.Unix(last+day, 0)
}

// adjust counts actual instead of the count of take (0 gives it back), in the windows that
// have not passed.
func (l *rates) adjust(ctx context.Context, h *counted, actual int64) error {
	live := make([]bool, len(h.holds))
	for i, n := range h.holds {
		live[i] = n.amount != actual
	}
	for range attempts {
		u := store.Update{Key: h.key}
		for i, n := range h.holds {
			if live[i] {
				u.Add = append(u.Add, store.Increment{Path: n.n, By: actual - n.amount})
				u.If = append(u.If, store.IfEqual(n.id, n.window))
				if n.fair {
					u.Add = append(u.Add, store.Increment{Path: store.In(n.by.Attr, h.slot), By: actual - n.amount})
				}
			}
		}
		if len(u.Add) == 0 {
			return nil
		}
		_, _, err := l.rate.Update(ctx, u)
		failed, ok := store.AsCondition(err)
		if !ok {
			return err
		}
		for i, n := range h.holds {
			live[i] = live[i] && failed.Current.Int(n.id.Attr) == n.window
		}
	}
	return store.ErrContended
}

func (l *rates) rateFault(s *Subject, c *counter, window int64) *fault.Fault {
	wait := max(time.Unix(window+c.unit.length, 0).Sub(l.clock()), time.Second)
	wait = (wait + time.Second - 1).Truncate(time.Second)
	f := fault.New(fault.RateLimited, "", fmt.Sprintf("Rate limit of %s exceeded: %s (%s); try again in %d s",
		s.name(), c.RateLimit, c.Unit, int64(wait/time.Second)))
	f.RetryAfter = wait
	f.Limit = s.limit(c.Type)
	value, resets := c.Value, time.Unix(window+c.unit.length, 0).UTC()
	f.Limit.Unit, f.Limit.Value, f.Limit.ResetsAt = string(c.Unit), &value, &resets
	return f
}

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
	share    int64 // of each caller
	reserved int64 // for callers other than the present one
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
	out.reserved = int64(held)
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

// capacity returns the maximum count of the window at which the caller is admitted; it counts
// the caller in its slot.
func (n *hold) capacity(u *store.Update, row store.Item, slot string, now int64) (most int64) {
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
		most -= d.reserved
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
	f.Message = fmt.Sprintf("Rate limit of %s is scarce: this caller has used its share of %s, the rest is reserved for others; try again in %d s",
		s.name(), n.RateLimit, int64(f.RetryAfter/time.Second))
	return f
}
