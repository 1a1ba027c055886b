package app

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/audit"
	"gateway/shared/ledger"
	"gateway/shared/notice"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Recorder takes audit records that belong to no change.
type Recorder interface {
	Record(ctx context.Context, org string, e audit.Entry) error
}

// LedgerHooks handle what the ledger reports. Unsettled entries become records; budgets that
// cross a threshold become audit records and notices in st; failures become log lines. recorder
// may be called later.
func LedgerHooks(sink usage.Sink, recorder func() Recorder, st store.Store) ledger.Hooks {
	return ledger.Hooks{
		Unconfirmed: func(ctx context.Context, u ledger.Unconfirmed) error { return sink.Emit(ctx, unconfirmed(u)) },
		Alert: func(ctx context.Context, a ledger.Alert) error {
			if r := recorder(); r != nil {
				if err := r.Record(ctx, a.Scope.Org, crossing(a)); err != nil {
					return err
				}
			}
			// Last, because a failed alert is repeated entirely and users must get one notice.
			return notice.Raise(ctx, st, warning(a), time.Now())
		},
		FailedOpen: func(_ context.Context, s *ledger.Subject, err error) {
			slog.Warn("a rate limit was not enforced", "kind", s.Kind, "id", s.ID, "error", err.Error())
		},
		Failed: func(_ context.Context, what string, err error) {
			slog.Error("ledger", "what", what, "error", err.Error())
		},
	}
}

// unconfirmed is the record of a request that died before it was settled. It has the
// request's id and time of arrival, so that a late record counts as the same one. Where the
// budgets were charged again for the same request, each further charge has a record of its
// own, at the same time, with an id that depends on nothing but the request and the turn: a
// repeated report gives the same record.
func unconfirmed(u ledger.Unconfirmed) *usage.Record {
	id, start := u.RequestID, u.Reserved
	if arrived, err := ulid.ParseStrict(id); err == nil {
		start = arrived.Timestamp().UTC()
		if u.Turn > 0 {
			further := sha256.Sum256([]byte(id + "#" + strconv.Itoa(u.Turn)))
			copy(arrived[6:], further[:])
			id = arrived.String()
		}
	} else if u.Turn > 0 {
		id += "#" + strconv.Itoa(u.Turn)
	}
	r := &usage.Record{
		ID: id, Start: start, Org: u.Scope.Org, Workspace: u.Scope.Workspace, Endpoint: "unconfirmed",
		Unconfirmed: true, Priced: true, Cost: u.Cost, CacheStatus: "DISABLED", ErrorCode: "unconfirmed",
		ErrorMessage: "the request ended without settling; its reservation was booked",
	}
	if u.Kind == ledger.Key {
		r.KeyID = u.ID
	}
	r.Usage.Set(pricing.Output, u.Tokens)
	r.Usage.Set(pricing.Requests, u.Requests)
	r.Usage.Estimated = true
	return r
}

// crossing is the audit record of a budget that passed its threshold or its end.
func crossing(a ledger.Alert) audit.Entry {
	event := "threshold"
	if a.Exhausted {
		event = "exhausted"
	}
	return audit.Entry{
		ResourceType: "budgets", Action: audit.Update, ResourceID: a.ID, WorkspaceID: a.Scope.Workspace, StatusCode: 200,
		Details: map[string]string{
			"event": event, "kind": a.Kind, "value_key": a.Bucket, "type": string(a.Budget),
			"usage": string(a.Budget.Amount(a.Usage)), "threshold": string(a.Budget.Amount(a.Threshold)), "limit": string(a.Budget.Amount(a.Limit)),
			"period_end": end(a.PeriodEnd),
		},
	}
}

// warning is the notice of a crossing.
func warning(a ledger.Alert) notice.Event {
	details := crossing(a).Details
	details["id"] = a.ID
	e := notice.Event{
		Type: notice.BudgetThreshold, Org: a.Scope.Org, Workspace: a.Scope.Workspace, Data: details,
		Audience: notice.Audience{Admins: true, Managers: true},
	}
	what := "has reached its alert threshold of " + details["threshold"]
	if a.Exhausted {
		e.Type, what = notice.BudgetExhausted, "is exhausted: the limit is "+details["limit"]
	}
	if a.Kind == ledger.Key {
		e.Audience.Key = a.ID
	}
	unit := string(a.Budget)
	if a.Budget == ledger.Cost {
		unit, details["cost_usd"] = "USD", details["usage"]
	}
	details["unit"] = unit // of usage, threshold and limit
	e.Summary = "The budget of " + strings.ReplaceAll(a.Kind, "_", " ") + " " + a.ID + " " + what + " " + unit
	return e
}

func end(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
