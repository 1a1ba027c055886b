package athena

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// leastRead is the least that Athena charges for a query that has succeeded, in bytes.
const leastRead = 10 << 20

// noteTime is how long noting what a question has read may take after its caller's time is
// up.
const noteTime = 2 * time.Second

// hourly limits how much the questions of an organisation read in an hour. Each attempt at
// a question has its own row, by its token. So an attempt that is asked for again while it
// runs is known: it is neither refused nor counted a second time.
type hourly struct {
	table store.Table // nil: no limit
	most  int64       // bytes
}

// attempt is one attempt at a question of an organisation.
type attempt struct {
	org, token string
	began      time.Time // beginning of its turn
}

const hourForm = "2006-01-02T15"

func (a *attempt) rows() store.Partition {
	return store.Scope{Org: a.org}.Partition("ASKED", a.began.UTC().Format(hourForm))
}

// row is what the attempt has read so far.
func (a *attempt) row(bytes int64) store.Row {
	return store.Row{Key: a.rows().Key(a.token), Item: store.Item{"bytes": bytes}, Expires: a.began.Add(2 * time.Hour)}
}

// unseen is what an attempt counts for until its end is seen, because it may go on reading
// when nobody waits for it. Counting all that it may read would refuse people who ask for a
// whole page of graphs.
func (h *hourly) unseen() int64 { return h.most / 50 }

// asking marks the queries that belong to one question, in a context.
type asking struct{ admitted atomic.Bool }

type askingKey struct{}

// Question implements report.Far.
func (e *Engine) Question(ctx context.Context) context.Context {
	if ctx.Value(askingKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, askingKey{}, new(asking))
}

// admit lets an attempt begin, or refuses it. The limit may be exceeded by what questions
// read that are running at the time. A question that has been admitted may go on, because
// what it has read is already paid for. Errors: a 429 fault until the hour is over.
func (h *hourly) admit(ctx context.Context, a *attempt, now time.Time) error {
	if h.table == nil {
		return nil
	}
	question, _ := ctx.Value(askingKey{}).(*asking)
	if question == nil {
		question = new(asking)
	}
	_, known, err := h.table.Get(ctx, a.rows().Key(a.token), true)
	if err == nil && !known && !question.admitted.Load() {
		err = h.bounded(ctx, a, now)
	}
	if err != nil {
		return err
	}
	question.admitted.Store(true)
	if known {
		return nil
	}
	return h.table.Put(ctx, a.row(h.unseen()))
}

// bounded refuses an attempt when the sum of the hour has reached the limit.
func (h *hourly) bounded(ctx context.Context, a *attempt, now time.Time) error {
	var sum int64
	for q := (store.Query{Partition: a.rows()}); ; {
		page, err := h.table.Query(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			sum += page.Rows[i].Item.Int("bytes")
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if sum >= h.most {
		f := fault.New(fault.RateLimited, "time_of_generation_min", fmt.Sprintf("with time_of_generation_max and the filter makes a question for many records, and such questions of this organisation have read %d GB in this hour, of %d that they may: narrow them, or ask again in the next hour", sum/1e9, h.most/1e9))
		f.RetryAfter = max(a.nextHour().Sub(now), time.Second)
		return f
	}
	return nil
}

// nextHour is the beginning of the first turn whose attempts count for the next hour.
func (a *attempt) nextHour() time.Time {
	turn := int64(sameQuery)
	end := a.began.Truncate(time.Hour).Add(time.Hour).UnixNano()
	return time.Unix(0, (end+turn-1)/turn*turn)
}

// note records how much an attempt has read: at its end, or as far as was seen.
func (h *hourly) note(ctx context.Context, a *attempt, bytes int64, ended bool) {
	if h.table == nil {
		return
	}
	if !ended {
		bytes = max(bytes, h.unseen())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if err := h.table.Put(ctx, a.row(bytes)); err != nil {
		slog.Warn("what a question has read was not counted", "bytes", bytes, "error", err.Error())
	}
}
