package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
)

func TestRateBucketsOfAPolicy(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		now := time.Date(2026, 11, 23, 10, 0, 30, 0, time.UTC)
		l := New(st, func() time.Time { return now }, Hooks{})
		rate := RateLimit{Type: Requests, Unit: PerMinute, Value: 2}
		long := "user:" + strings.Repeat("x", 400)
		count := func(bucket string) {
			t.Helper()
			s := &Subject{Scope: store.Scope{Org: "o", Workspace: "w"}, Kind: Policy, ID: "r", Bucket: bucket, Rates: []RateLimit{rate}}
			if _, err := l.rates.Admit(ctx, "", []*Subject{s}); err != nil {
				t.Fatal(err)
			}
		}
		policy := &Subject{Scope: store.Scope{Org: "o", Workspace: "w"}, Kind: Policy, ID: "r", Rates: []RateLimit{rate}}
		state := func() string {
			t.Helper()
			var got []string
			for after := ""; ; {
				page, next, err := l.rates.RateBuckets(ctx, policy, after, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range page {
					got = append(got, fmt.Sprint(b.ValueKey[:min(8, len(b.ValueKey))], len(b.ValueKey), " ", b.Rates[0].Used, b.Rates[0].IsFull(), b.Rates[0].ResetsAt.Format(" 15:04:05")))
				}
				if after = next; after == "" {
					return strings.Join(got, ", ")
				}
			}
		}
		count("user:a")
		count("user:b#|%")
		count("user:b#|%")
		count(long)
		if got, want := state(), "user:xxx405 1 false 10:01:00, user:a6 1 false 10:01:00, user:b#|9 2 true 10:01:00"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		now = now.Add(time.Minute)
		count("user:a")
		if got, want := state(), "user:a6 1 false 10:02:00"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
