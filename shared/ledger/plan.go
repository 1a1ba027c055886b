package ledger

import (
	"strconv"
	"strings"
	"time"

	"gateway/shared/store"
)

// A slot is one kind of budget in a spend row.
const (
	slotCost = iota
	slotTokens
	slotRequests
	numSlots
)

var slotMeasure = [numSlots]Measure{Cost, Tokens, Requests}

// amounts is a quantity per slot: nano-dollars, tokens, requests.
type amounts [numSlots]int64

func (a amounts) zero() bool { return a == amounts{} }

// slot is one budget of a plan.
type slot struct {
	on        bool
	limit     int64
	threshold int64 // 0 means none
	schedule  Schedule
	setAt     int64 // Unix milliseconds
	resetAt   int64
}

// plan is the configuration of a subject's budgets. Its text is part of each spend row,
// so that the update of a row with another configuration detects and migrates it.
type plan struct {
	text  string
	value store.Value // the text, for conditions
	rev   int64
	any   bool
	slots [numSlots]slot
}

// newPlan returns the plan of budgets at a time.
func newPlan(budgets []UsageLimit, rev int64, now time.Time) *plan {
	p := &plan{rev: rev}
	for i, m := range slotMeasure {
		for _, u := range budgets {
			if u.Type != m || p.slots[i].on {
				continue
			}
			p.any = true
			p.slots[i] = slot{
				on: true, limit: u.CreditLimit + u.Raised(now), threshold: u.AlertThreshold, schedule: u.Schedule(),
				setAt: millis(u.SetAt), resetAt: millis(u.ResetAt),
			}
		}
	}
	p.text = p.encode()
	p.value = p.text
	return p
}

// encode returns slots separated by ';', fields by '|'.
func (p *plan) encode() string {
	var b []byte
	for i, s := range p.slots {
		if !s.on {
			continue
		}
		if len(b) > 0 {
			b = append(b, ';')
		}
		b = append(b, slotMeasure[i]...)
		first := int64(0)
		if !s.schedule.First.IsZero() {
			first = s.schedule.First.Unix()
		}
		b = append(b, '|')
		b = append(b, s.schedule.Cadence...)
		for _, n := range []int64{s.limit, s.threshold, int64(s.schedule.Days), first, s.setAt, s.resetAt} {
			b = strconv.AppendInt(append(b, '|'), n, 10)
		}
	}
	return string(b)
}

// parsePlan parses the output of encode; invalid slots are off.
func parsePlan(text string, rev int64) *plan {
	p := &plan{text: text, value: text, rev: rev}
	for part := range strings.SplitSeq(text, ";") {
		if strings.Count(part, "|") != 7 {
			continue
		}
		measure, rest, _ := strings.Cut(part, "|")
		cadence, rest, _ := strings.Cut(rest, "|")
		var n [6]int64
		for i := range n {
			var number string
			number, rest, _ = strings.Cut(rest, "|")
			n[i], _ = strconv.ParseInt(number, 10, 64)
		}
		for i, m := range slotMeasure {
			if string(m) != measure {
				continue
			}
			s := slot{on: true, limit: n[0], threshold: n[1], setAt: n[4], resetAt: n[5],
				schedule: Schedule{Cadence: Cadence(cadence), Days: int(n[2])}}
			if n[3] != 0 {
				s.schedule.First = time.Unix(n[3], 0).UTC()
			}
			p.any, p.slots[i] = true, s
		}
	}
	return p
}

// mask clears the amounts of slots that the plan does not have.
func (p *plan) mask(a amounts) amounts {
	for i := range a {
		if !p.slots[i].on {
			a[i] = 0
		}
	}
	return a
}

// never is the reset time of a budget without resets: the year 9999.
const never = 253402300799

// nextReset returns the slot's next reset in Unix seconds.
func (s *slot) nextReset(now time.Time) int64 {
	if t, ok := s.schedule.Next(now); ok {
		return t.Unix()
	}
	return never
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
