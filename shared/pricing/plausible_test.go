package pricing

import (
	"math"
	"testing"
)

// Every class has a limit, so that a new one cannot turn a wrong count into money.
func TestEveryClassOfUsageIsLimited(t *testing.T) {
	t.Parallel()
	for c := range NumClasses {
		for _, absurd := range []int64{math.MaxInt64, 2 * MaxUnits, MaxUnits + 1} {
			var u, most Usage
			u.Set(c, absurd)
			most.Set(Input, 5)
			most.Set(Output, 7)
			got := u.Limit(most)
			bound := int64(0)
			switch {
			case inputClasses&(1<<c) != 0:
				bound = 5
			case outputClasses&(1<<c) != 0:
				bound = 7
			case c == TrainingTokens:
				bound = MaxUnits // a job of so many tokens exists
			}
			if n := got.InputTokens() + got.OutputTokens() + got.N(c); c != TrainingTokens && (!got.Limited || !got.Estimated) || got.N(c) > bound || n > 2*bound {
				t.Errorf("%s: %d became %+v", c, absurd, got)
			}
		}
		if tokenClasses&(1<<c) == 0 && mostUnits[c] == 0 {
			t.Errorf("%s has no limit", c)
		}
	}
}

func TestPlausibleUsageIsAccepted(t *testing.T) {
	t.Parallel()
	var u Usage
	u.Set(Input, 2_000_000)
	u.Set(CacheRead, 50_000_000)
	u.Set(Output, 900_000)
	u.Set(WebSearches, 300)
	if got := u.Limit(Usage{}); got != u {
		t.Errorf("%+v", got)
	}
	u.Set(CacheWrite5m, 60_000_000) // the sum counts, not each part
	if got := u.Limit(Usage{}); !got.Limited || got.InputTokens() != 0 || got.Cached() != 0 || got.N(Output) != 900_000 || got.N(WebSearches) != 300 {
		t.Errorf("%+v", got)
	}
}
