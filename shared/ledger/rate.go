package ledger

import (
	"context"
	"fmt"
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

// held is what one subject counted for a request.
type held struct {
	key   store.Key
	slot  string // of the caller, in shared windows
	holds []hold
	err   error // why nothing was counted

	few [2]hold // memory of holds
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
func (l *rates) take(ctx context.Context, s *Subject, caller string, m Measure, want int64) *held {
	h := &held{key: s.derive().rate}
	h.err = l.takeIn(ctx, h, s, caller, m, want)
	return h
}

func (l *rates) takeIn(ctx context.Context, h *held, s *Subject, caller string, m Measure, want int64) error {
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
		fresh := h.slot != "" && (len(w.u.Set) > 0 || c.asked.Add(1)%seenEvery == 0)
		if fresh {
			w.u.Look = nil
		}
		_, after, err := w.write(ctx, l.rate, now)
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
func (h *held) count(u *store.Update, row store.Item, guess bool, now, want int64) (full *hold) {
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
			most = n.room(u, row, h.slot, now)
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

// give counts actual instead of the count of take (0 gives it back), in the windows that
// have not passed.
func (l *rates) give(ctx context.Context, h *held, actual int64) error {
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
