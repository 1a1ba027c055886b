package ledger

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gateway/shared/store"
)

func TestBucketsOfAPolicy(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		l := New(st, time.Now, Hooks{})
		policy := budgeted(Policy, "p", UsageLimit{Type: Requests, CreditLimit: 2})
		for i, name := range []string{"user:a", "user:b#1", "user:c"} {
			s := budgeted(Policy, "p", policy.Budgets...)
			s.Bucket = name
			for range i {
				spend(t, l, 0, s)
			}
			spend(t, l, 0, s)
		}
		var got []string
		for after := ""; ; {
			page, next, err := l.Buckets(ctx, policy, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range page {
				got = append(got, fmt.Sprint(b.ValueKey, " ", b.Budgets[0].Usage, " ", b.Budgets[0].Status))
			}
			if after = next; after == "" {
				break
			}
		}
		if want := "[user:a 1 active user:b#1 2 exhausted user:c 2 exhausted]"; fmt.Sprint(got) != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestStatesReadsMany(t *testing.T) {
	l := New(newMemory(), time.Now, Hooks{})
	subjects := []*Subject{budgeted(Key, "a", dollars(1)), budgeted(Key, "b"), budgeted(Key, "c", dollars(2))}
	spend(t, l, 0.5, subjects[2])
	got, err := l.States(ctx, subjects)
	if err != nil || len(got) != 3 || got[0][0].Usage != 0 || got[1] != nil || got[2][0].Usage != 0.5*dollar {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStateInTheAPI(t *testing.T) {
	var out []byte
	for _, b := range []BudgetState{
		{Limit: dollars(10), Status: Active},
		{Limit: UsageLimit{Type: Cost, CreditLimit: 10.5 * dollar, AlertThreshold: 8 * dollar, Cadence: Monthly, NextReset: at("2026-12-01"), SetAt: at("2026-11-20")},
			Usage: 1_234_567, Status: Active, NextResetAt: at("2027-01-01"), LastResetAt: at("2026-12-01"), ThresholdAlert: true},
		{Limit: UsageLimit{Type: Tokens, CreditLimit: 100, Cadence: Days, Days: 7}, Usage: 100, Status: Exhausted, ExhaustedAlert: true},
	} {
		raw, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, raw...), '\n')
	}
	golden(t, "state.json", out)
}
