package upstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestUnreachableHidesTransportErrors: what is told says nothing of addresses.
func TestUnreachableHidesTransportErrors(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		errors.New("dial tcp 10.1.2.3:80: connection refused"): "the server cannot be reached",
		fmt.Errorf("Get: %w", context.DeadlineExceeded):        "the server did not respond in time",
		fmt.Errorf("Get: %w", context.Canceled):                "the server did not respond in time",
	} {
		if f := Unreachable("the server", err); f.Why != want || !errors.Is(f, err) {
			t.Errorf("%v: %q, %v", err, f.Why, f)
		}
	}
}
