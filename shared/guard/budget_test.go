package guard

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestPatientBudgetsWaitForTheVerdict searches for longer than a request may.
func TestPatientBudgetsWaitForTheVerdict(t *testing.T) {
	t.Parallel()
	re, err := CompilePattern(`^(a+)+$`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 23) + "b" // a second or more
	var found bool
	if spent := NewPatientBudget().Spend(t.Context(), func(ctx context.Context) { found, err = re.Match(ctx, text) }); spent != nil || err != nil || found {
		t.Errorf("%v, %v, %v", spent, found, err)
	}
}

// TestALateDeadlineIsNoPatience requires that only a patient budget lifts the limit of a search.
func TestALateDeadlineIsNoPatience(t *testing.T) {
	t.Parallel()
	re, err := CompilePattern(`a`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	if e, err := re.engine(ctx); err != nil || e.MatchTimeout != MatchTime {
		t.Errorf("%v, %v", e.MatchTimeout, err)
	}
}
