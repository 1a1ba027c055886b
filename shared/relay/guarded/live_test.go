package guarded

import (
	"strconv"
	"testing"

	"gateway/shared/guard"
	"gateway/shared/guard/chain"
)

// TestVerdictsOfASessionAreBounded: a session that makes no record keeps the last ones.
func TestVerdictsOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	var l Live
	const many = 10 * maxNotes
	for i := range many {
		l.note([]chain.Result{{ID: strconv.Itoa(i)}}, guard.Before)
	}
	got := l.take()
	if len(got) != maxNotes || got[maxNotes-1].Hook != strconv.Itoa(many-1) || cap(got) > 4*maxNotes {
		t.Errorf("%d verdicts in room for %d, the last of %s", len(got), cap(got), got[len(got)-1].Hook)
	}
	if len(l.take()) != 0 {
		t.Error("verdicts are told twice")
	}
}
