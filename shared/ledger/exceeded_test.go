package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
)

// An audited budget lets through what it has not enough for, and its books say all of
// it.
func TestAnAuditedBudgetLetsThroughAndCounts(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		l := New(st, h.now, Hooks{})
		limit := dollars(1)
		limit.OnExceeded = Audit
		s := budgeted(Key, "k", limit)
		for i, used := range []float64{0.6, 0.6, 5} {
			r, err := l.Reserve(ctx, "r", []*Subject{s}, cost(6))
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			if err := r.Raise(ctx, cost(7)); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			if err := r.Settle(ctx, pricing.NanoDollars(used*dollar), 0); err != nil {
				t.Fatal(err)
			}
		}
		if b := stateOf(t, l, s); b.Usage != 6.2*dollar || b.Reserved != 0 || b.Available() != -5.2*dollar || b.Status != Exhausted {
			t.Errorf("%+v", b)
		}
		if spend(t, l, 0.01, budgeted(Key, "k", dollars(1))) { // denying again
			t.Error("a denying budget let a request through")
		}
	})
}

// A raise counts until it expires, by the clock alone.
func TestARaiseExpires(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		l := New(st, h.now, Hooks{})
		limit := dollars(1)
		limit.Extra, limit.ExtraUntil = dollar/2, at("2026-11-21")
		s := budgeted(Key, "k", limit)
		if !spend(t, l, 1.3, s) {
			t.Fatal("a raised limit refused")
		}
		if b := stateOf(t, l, s); b.Available() != 0.2*dollar || b.Raised != dollar/2 || b.Status != Active {
			t.Errorf("%+v", b)
		}
		_, err := l.Reserve(ctx, "r", []*Subject{s}, cost(0.21))
		if f := fault.From(err); !fault.Is(err, fault.BudgetExhausted) || f.Limit == nil || f.Limit.Available != "0.2" || f.Limit.Raised != "0.5" {
			t.Errorf("beyond the raised limit: %v", err)
		}
		h.set("2026-11-21T00:00:00Z")
		if b := stateOf(t, l, s); b.Available() != -0.3*dollar || b.Raised != 0 || b.Status != Exhausted {
			t.Errorf("%+v", b)
		}
		if spend(t, l, 0.01, s) {
			t.Error("an expired raise let a request through")
		}
	})
}

func TestRaisesAreReadExactly(t *testing.T) {
	t.Parallel()
	const ahead = `"2030-01-01T12:30:00Z"`
	limits, bad := OnKey.UsageLimits([]byte(`{"credit_limit":10,"on_exceeded":"audit","temporary_raise":{"amount":2.5,"expires_at":`+ahead+`}}`), "usage_limits")
	if len(bad) > 0 || limits[0].Extra != 2_500_000_000 || !limits[0].ExtraUntil.Equal(time.Date(2030, 1, 1, 12, 30, 0, 0, time.UTC)) || limits[0].OnExceeded != Audit {
		t.Fatalf("%+v %v", limits, bad)
	}
	raw, _ := json.Marshal(limits[0])
	var again UsageLimit
	if err := json.Unmarshal(raw, &again); err != nil || again != limits[0] {
		t.Errorf("%s: %+v %v", raw, again, err)
	}
	for body, field := range map[string]string{
		`{"credit_limit":10,"on_exceeded":"explode"}`:                                                      "usage_limits.on_exceeded",
		`{"credit_limit":10,"on_exceeded":"fallback"}`:                                                     "usage_limits.fallback_model",
		`{"credit_limit":10,"on_exceeded":"fallback","fallback_model":"gpt-4o"}`:                           "usage_limits.fallback_model",
		`{"credit_limit":10,"on_exceeded":"fallback","fallback_model":"@mock/*"}`:                          "usage_limits.fallback_model",
		`{"credit_limit":10,"on_exceeded":"fallback","fallback_model":7}`:                                  "usage_limits.fallback_model",
		`{"credit_limit":10,"fallback_model":"@mock/gpt-4o"}`:                                              "usage_limits.fallback_model",
		`{"credit_limit":10,"on_exceeded":1}`:                                                              "usage_limits.on_exceeded",
		`{"credit_limit":10,"temporary_raise":5}`:                                                          "usage_limits.temporary_raise",
		`{"credit_limit":10,"temporary_raise":{"amount":-1,"expires_at":` + ahead + `}}`:                   "usage_limits.temporary_raise.amount",
		`{"credit_limit":10,"temporary_raise":{"amount":1e18,"expires_at":` + ahead + `}}`:                 "usage_limits.temporary_raise.amount",
		`{"credit_limit":10,"temporary_raise":{"amount":999999999,"expires_at":` + ahead + `}}`:            "usage_limits.temporary_raise.amount",
		`{"credit_limit":10,"temporary_raise":{"amount":5}}`:                                               "usage_limits.temporary_raise.expires_at",
		`{"credit_limit":10,"temporary_raise":{"amount":5,"expires_at":"soon"}}`:                           "usage_limits.temporary_raise.expires_at",
		`{"credit_limit":10,"temporary_raise":{"amount":5,"expires_at":` + ahead + `,"extra":1}}`:          "usage_limits.temporary_raise.extra",
		`{"type":"tokens","credit_limit":100,"temporary_raise":{"amount":5.5,"expires_at":` + ahead + `}}`: "usage_limits.temporary_raise.amount",
	} {
		if _, bad := OnKey.UsageLimits([]byte(body), "usage_limits"); len(bad) != 1 || bad[0].Field != field {
			t.Errorf("%s: %v, want %s", body, bad, field)
		}
	}
}
