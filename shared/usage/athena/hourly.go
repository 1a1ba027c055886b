package athena

import (
	"context"
	"fmt"
	"log/slog"
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

// admit lets an attempt begin, or refuses it: questions that are being answered may go
// past the bound by what they read. Errors: a 429 fault until the hour is over.
func (h *hourly) admit(ctx context.Context, a *attempt, now time.Time) error {
	if h.table == nil {
		return nil
	}
	if _, known, err := h.table.Get(ctx, a.rows().Key(a.token), true); known || err != nil {
		return err
	}
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
		f.RetryAfter = max(a.began.Truncate(time.Hour).Add(time.Hour).Sub(now), time.Second)
		return f
	}
	return h.table.Put(ctx, a.row(0))
}

// note keeps what an attempt has read.
func (h *hourly) note(ctx context.Context, a *attempt, bytes int64) {
	if h.table == nil || bytes <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	if err := h.table.Put(ctx, a.row(bytes)); err != nil {
		slog.Warn("what a question has read was not counted", "bytes", bytes, "error", err.Error())
	}
}
