package record

import (
	"testing"
	"time"

	"gateway/shared/fault"
)

// A status that was decided stays when a head with another status is sent: the body of a final
// rejection may be an event under 200.
func TestLogStatusOutlastsHead(t *testing.T) {
	t.Parallel()
	denied := fault.New(fault.GuardrailDenied, "", "denied")
	for name, c := range map[string]struct {
		add  func(*Log)
		want int
	}{
		"head alone":        {func(l *Log) { l.Head(200) }, 200},
		"two heads":         {func(l *Log) { l.Head(101); l.Head(200) }, 101},
		"fault before head": {func(l *Log) { l.Reject(denied); l.Head(200) }, denied.Status()},
		"fault after head":  {func(l *Log) { l.Head(200); l.Reject(denied) }, denied.Status()},
		"failure alone":     {func(l *Log) { l.Head(200); l.Fail(denied) }, 200},
	} {
		l := new(Log)
		if c.add(l); l.Outcome().Status != c.want {
			t.Errorf("%s: status %d, want %d", name, l.Outcome().Status, c.want)
		}
	}
}

func TestLogAddsUp(t *testing.T) {
	t.Parallel()
	l := new(Log)
	l.Wait(time.Second)
	l.Wait(2 * time.Second)
	l.Attempt(time.Minute)
	l.Attempt(time.Hour)
	l.Retried(3)
	l.Body(Response, []byte("abc"))
	l.Body(Received, []byte("not counted"))
	l.Count(4)
	want := Outcome{Bytes: 7, Retries: 3, Upstream: time.Hour, Waited: 3 * time.Second}
	if got := l.Outcome(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if l.Bodies.SetExtras(Extras{}, nil); string(l.Bodies.of.Response) != "abc" || string(l.Bodies.of.Received) != "not counted" {
		t.Errorf("%q, %q", l.Bodies.of.Response, l.Bodies.of.Received)
	}
	if !l.Close() || l.Close() || !l.Closed() {
		t.Error("the record is not written exactly once")
	}
	if l.Free(); l.Outcome() != (Outcome{}) || l.Closed() || l.Bodies.of.Response != nil {
		t.Errorf("after Free: %+v", l.Outcome())
	}
}
