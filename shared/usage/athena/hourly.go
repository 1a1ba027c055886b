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

// leastRead is the minimum that Athena charges for a successful query, in bytes.
const leastRead = 10 << 20

// noteTime limits the recording of the bytes read after the caller's deadline.
const noteTime = 2 * time.Second

// hourly limits how much the queries of an organization read in an hour. Each attempt has
// a row, identified by its token, so a repeated request for a running attempt is neither
// rejected nor counted again.
type hourly struct {
	table store.Table // nil means no limit
	most  int64       // bytes
}

// attempt is one attempt at a query of an organization.
type attempt struct {
	org, token string
	began      time.Time // start of its turn
}

const hourForm = "2006-01-02T15"

func (a *attempt) rows() store.Partition {
	return store.Scope{Org: a.org}.Partition("ASKED", a.began.UTC().Format(hourForm))
}

// row records the bytes that the attempt has read so far.
func (a *attempt) row(bytes int64) store.Row {
	return store.Row{Key: a.rows().Key(a.token), Item: store.Item{"bytes": bytes}, Expires: a.began.Add(2 * time.Hour)}
}

// unseen is the provisional charge of an attempt until its end is observed, because it
// may continue to read when its caller has left. A charge of all that it may read would
// reject callers who load a page of graphs.
func (h *hourly) unseen() int64 { return h.most / 50 }

// asking groups the queries of one request, in a context.
type asking struct{ admitted atomic.Bool }

type askingKey struct{}

// Question implements report.SQLEngine.
func (e *Engine) Question(ctx context.Context) context.Context {
	if ctx.Value(askingKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, askingKey{}, new(asking))
}

// admit admits or rejects an attempt. The limit may be exceeded by queries that are
// running. An admitted query may continue, because its data is already paid for. Errors:
// a 429 fault until the hour is over.
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

// bounded rejects an attempt if the sum of the hour has reached the limit.
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

// nextHour returns the start of the first turn that counts for the next hour.
func (a *attempt) nextHour() time.Time {
	turn := int64(sameQuery)
	end := a.began.Truncate(time.Hour).Add(time.Hour).UnixNano()
	return time.Unix(0, (end+turn-1)/turn*turn)
}

// note records how many bytes an attempt has read: at its end, or so far.
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
		slog.Warn("the bytes read by a query were not recorded", "bytes", bytes, "error", err.Error())
	}
}
