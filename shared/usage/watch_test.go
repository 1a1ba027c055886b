package usage

import (
	"testing"
	"time"
)

// A batch with a waiting reader is returned after a quarter of its time.
func TestWatchShortensTheWaitOfABatch(t *testing.T) {
	j := &Journal{}
	if got := j.patience(time.Second); got != time.Second {
		t.Errorf("nobody watches: %s", got)
	}
	watched := false
	j.Watch(func() bool { return watched })
	if got := j.patience(time.Second); got != time.Second {
		t.Errorf("nobody watches now: %s", got)
	}
	watched = true
	if got := j.patience(time.Second); got != 250*time.Millisecond {
		t.Errorf("somebody watches: %s", got)
	}
}
