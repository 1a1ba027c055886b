package prompt

import (
	"fmt"
	"testing"
)

const trialID = "6f1c0d9e-2f0b-4f57-8c0a-3a4f0e8a0001"

// picks gives the version of each of n users.
func picks(e *Experiment, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = e.Pick(trialID, fmt.Sprintf("user-%d", i))
	}
	return out
}

// Users keep their version, versions get their share, and a weight that grows takes
// users from others and gives none.
func TestVersionsShareUsersByWeight(t *testing.T) {
	t.Parallel()
	const users = 20_000
	e := &Experiment{Variants: []Variant{{1, 50}, {2, 30}, {3, 20}, {4, 0}}}
	before := picks(e, users)
	count := map[int64]int{}
	for i, v := range before {
		if again := e.Pick(trialID, fmt.Sprintf("user-%d", i)); again != v {
			t.Fatalf("user %d gets %d and %d", i, v, again)
		}
		count[v]++
	}
	for v, want := range map[int64]int{1: users / 2, 2: users * 3 / 10, 3: users / 5, 4: 0} {
		if got := count[v]; got < want-users/100 || got > want+users/100 {
			t.Errorf("version %d has %d users of %d, want about %d", v, got, users, want)
		}
	}
	grown := &Experiment{Variants: []Variant{{1, 50}, {2, 30}, {3, 45}, {4, 0}}}
	moved := 0
	for i, v := range picks(grown, users) {
		if v != before[i] {
			if moved++; v != 3 {
				t.Fatalf("user %d went from %d to %d though only version 3 has grown", i, before[i], v)
			}
		}
	}
	// 45 of 125 in place of 20 of 100.
	if want := users * 16 / 100; moved < want-users/100 || moved > want+users/100 {
		t.Errorf("%d users have moved, want about %d", moved, want)
	}
	other := 0
	for i := range before {
		if e.Pick("another experiment", fmt.Sprintf("user-%d", i)) != before[i] {
			other++
		}
	}
	if other < users/2 {
		t.Errorf("%d users have another version in another experiment: they are the same groups", other)
	}
}

func TestBadExperimentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variants []Variant
		field    string
	}{
		{[]Variant{{1, 1}}, "variants"}, {[]Variant{{1, 1}, {1, 1}}, "variants[1].version"}, {[]Variant{{1, 0}, {2, 0}}, "variants"},
		{[]Variant{{1, 1}, {0, 1}}, "variants[1].version"}, {[]Variant{{1, -1}, {2, 1}}, "variants[0].weight"}, {[]Variant{{1, 1}, {2, maxWeight + 1}}, "variants[1].weight"},
		{make([]Variant, 11), "variants"}, {[]Variant{{1, 1}, {2, 1}}, ""},
	} {
		bad := (&Experiment{Variants: c.variants}).Validate()
		if c.field == "" && len(bad) > 0 || c.field != "" && (len(bad) == 0 || bad[0].Field != c.field) {
			t.Errorf("%v: %v, want %q", c.variants, bad, c.field)
		}
	}
}
