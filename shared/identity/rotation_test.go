package identity

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func day(s string) time.Time {
	t, err := time.Parse("2006-01-02", s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestNextRotation(t *testing.T) {
	soon := day("2026-03-05")
	for _, c := range []struct {
		name   string
		policy RotationPolicy
		now    time.Time
		want   string
	}{
		{"weekly means Monday", RotationPolicy{Period: "weekly"}, day("2026-11-20"), "2026-11-23"},
		{"a Monday waits a week", RotationPolicy{Period: "weekly"}, day("2026-11-23").Add(time.Hour), "2026-11-30"},
		{"monthly means the first", RotationPolicy{Period: "monthly"}, day("2026-12-31"), "2027-01-01"},
		{"days count from today", RotationPolicy{PeriodDays: 30}, day("2028-02-15").Add(23 * time.Hour), "2028-03-16"},
		{"a stated date comes first", RotationPolicy{Period: "weekly", NextAt: &soon}, day("2026-03-01"), "2026-03-05"},
		{"a past date gives way to the period", RotationPolicy{Period: "monthly", NextAt: &soon}, day("2026-03-05"), "2026-04-01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.policy.Next(c.now)
			if got == nil || got.Format("2006-01-02T15:04") != c.want+"T00:00" {
				t.Errorf("Next(%s) = %v, want %s at midnight", c.now, got, c.want)
			}
		})
	}
	if got := (&RotationPolicy{NextAt: &soon}).Next(day("2026-03-05")); got != nil {
		t.Errorf("a single date that has passed gives %v, want none", got)
	}
}

func TestNextRotationLiesAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "now"), 0)
		p := RotationPolicy{PeriodDays: rapid.IntRange(1, 365).Draw(t, "days")}
		if rapid.Bool().Draw(t, "named") {
			p = RotationPolicy{Period: rapid.SampledFrom([]string{"weekly", "monthly"}).Draw(t, "period")}
		}
		next := p.Next(now)
		if !next.After(now) || !next.Equal(Midnight(*next)) {
			t.Fatalf("Next(%s) = %s", now, next)
		}
	})
}

func TestRotationPolicyRejectsInvalidFields(t *testing.T) {
	now := day("2026-11-20")
	past := day("2026-11-20")
	for field, p := range map[string]RotationPolicy{
		"rotation_policy.rotation_period":          {Period: "daily"},
		"rotation_policy.rotation_period_days":     {Period: "weekly", PeriodDays: 3},
		"rotation_policy.next_rotation_at":         {NextAt: &past},
		"rotation_policy.key_transition_period_ms": {Period: "weekly", TransitionMS: 60_000},
	} {
		if d := p.Validate(now); len(d) != 1 || d[0].Field != field {
			t.Errorf("%s: got %v", field, d)
		}
	}
	long := RotationPolicy{PeriodDays: 1, TransitionMS: (24 * time.Hour).Milliseconds()}
	if d := long.Validate(now); len(d) != 1 || !strings.Contains(d[0].Message, "less than") {
		t.Errorf("a transition as long as the period: %v", d)
	}
	if d := (&RotationPolicy{}).Validate(now); len(d) != 1 {
		t.Errorf("an empty policy: %v", d)
	}
}
