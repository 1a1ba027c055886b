package guard

import (
	"context"
	"strings"
	"testing"
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
