package plan

import (
	"context"
	"testing"
	"time"
)

// Clients recognize the timeout of a request by this text.
func TestRequestTimeoutHasTheCompatibleText(t *testing.T) {
	var a AttemptTimeouts
	ctx, release := a.StartAttempt(context.Background(), 20*time.Millisecond, 0, 0)
	defer release()
	<-ctx.Done()
	f := a.TimeoutFault()
	if f == nil || f.Status() != 408 || f.Message != "Request exceeded the timeout sent in the request: 20ms" {
		t.Errorf("%+v", f)
	}
}
