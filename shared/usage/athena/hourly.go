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

// leastRead is what Athena charges for at least, of a query that has succeeded.
const leastRead = 10 << 20

// noteTime is how long it may take to note what a question has read when its caller has
// no time left.
const noteTime = 2 * time.Second

// hourly bounds what the questions of an organisation read in an hour. Each attempt at a
// question has a row of its own, by its token: asked again while it lasts, it is known,
// and neither refused nor counted once more.
type hourly struct {
	table store.Table // nil: no bound
	most  int64       // bytes
}

// attempt is one attempt at a question of an organisation.
type attempt struct {
	org, token string
	began      time.Time // of its turn
}

const hourForm = "2006-01-02T15"

func (a *attempt) rows() store.Partition {
	return store.Scope{Org: a.org}.Partition("ASKED", a.began.UTC().Format(hourForm))
}

// row is what the attempt has read so far.
func (a *attempt) row(bytes int64) store.Row {
	return store.Row{Key: a.rows().Key(a.token), Item: store.Item{"bytes": bytes}, Expires: a.began.Add(2 * time.Hour)}
}

// unseen is what an attempt counts for until its end is seen: it may be left to itself,
// and read on. The whole of what it may read would refuse those who ask for a page of
// graphs at once.
func (h *hourly) unseen() int64 { return h.most / 50 }

// asking marks the queries of one question in a context.
type asking struct{ admitted atomic.Bool }

type askingKey struct{}

// Question implements report.Far.
func (e *Engine) Question(ctx context.Context) context.Context {
	if ctx.Value(askingKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, askingKey{}, new(asking))
}

// admit lets an attempt begin, or refuses it: questions that are being answered may go
// past the bound by what they read. What a question has begun it goes on with: what it
// has read is paid for. Errors: a 429 fault until the hour is over.
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

// bounded refuses an attempt where the sum of the hour's has come to the bound.
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

// nextHour is when the first turn begins whose attempts are of the next hour.
func (a *attempt) nextHour() time.Time {
	turn := int64(sameQuery)
	end := a.began.Truncate(time.Hour).Add(time.Hour).UnixNano()
	return time.Unix(0, (end+turn-1)/turn*turn)
}

// note keeps what an attempt has read, by its end or as far as it was seen.
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
