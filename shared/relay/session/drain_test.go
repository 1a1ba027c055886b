package session

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/fault"
)

// side is one end of a session in memory.
type side struct {
	messages chan string
	closed   chan struct{}
	once     sync.Once
	write    func(p []byte)
	last     Ended // of the first Close
}

func newSide(write func(p []byte)) *side {
	return &side{messages: make(chan string), closed: make(chan struct{}), write: write}
}

func (s *side) Next() (bool, io.Reader, error) {
	select {
	case m := <-s.messages:
		return false, strings.NewReader(m), nil
	case <-s.closed:
		return false, nil, &Ended{Normal, ""}
	}
}

func (s *side) Write(_ bool, p []byte) error { s.write(p); return nil }
func (s *side) Ping() error                  { return nil }
func (s *side) Close(code int, reason string) {
	s.once.Do(func() { s.last = Ended{code, reason}; close(s.closed) })
}
func (s *side) Linger() {}
func (s *side) Drop()   { s.Close(0, "") }

// admitting is a desk that admits everything.
type admitting struct{}

func (admitting) Reserve(*ResponseLimits) (Reservation, error)          { return admitting{}, nil }
func (admitting) ChargeLate(*realtime.Done, []byte)                     {}
func (admitting) ChargeTranscript(*realtime.Transcript, string, []byte) {}
func (admitting) Names([]byte) error                                    { return nil }
func (admitting) RecordHandle(string) error                             { return nil }
func (admitting) Allows(string) error                                   { return nil }
func (admitting) Check() error                                          { return nil }
func (admitting) Fail(string, error)                                    {}
func (admitting) End(*realtime.Done, []byte)                            {}
func (admitting) Drop(*fault.Fault)                                     {}

// asking records the requested responses.
type asking struct {
	admitting
	wanted []ResponseLimits
}

func (a *asking) Reserve(w *ResponseLimits) (Reservation, error) {
	a.wanted = append(a.wanted, *w)
	return admitting{}, nil
}

// A saved prompt that the client or the provider names, and a tool that the provider runs, are
// input of any length, for each later response.
func TestASavedPromptOfASessionIsInputOfAnyLength(t *testing.T) {
	t.Parallel()
	const update, create = `{"type":"session.update","session":{"prompt":{"id":"pmpt_1"}}}`, `{"type":"response.create"}`
	const mcp = `{"type":"session.update","session":{"tools":[{"type":"mcp","server_label":"x"}]}}`
	for name, said := range map[string][]string{"by the client": {update}, "by the provider": {"far " + strings.Replace(update, "update", "updated", 1)}, "a tool server": {mcp}, "nobody": nil} {
		a := &asking{}
		near := newSide(func([]byte) {})
		s := &Session{Client: near, Provider: newSide(func([]byte) {}), Controller: a, Model: "m"}
		var reader realtime.Reader
		for _, event := range append(said, create, `{"type":"session.update","session":{"prompt":null}}`, create) {
			var err error
			if far, ok := strings.CutPrefix(event, "far "); ok {
				err = s.takes(&reader, false, []byte(far))
			} else {
				err = s.fromClient(&reader, false, []byte(event))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, w := range a.wanted {
			if held := w.UnboundedField != ""; held != (name != "nobody") {
				t.Errorf("%s: response %d: %q", name, i, w.UnboundedField)
			}
		}
		if len(a.wanted) != 2 {
			t.Errorf("%s: %d responses", name, len(a.wanted))
		}
	}
}

// TestTheEndOfAResponseIsToldBeforeASessionDrains checks that a draining session with a last
// response in progress ends after the client has received the end of the response.
func TestTheEndOfAResponseIsToldBeforeASessionDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		told := false
		near := newSide(func(p []byte) {
			if bytes.Contains(p, []byte("response.done")) {
				<-release
				told = true
			}
		})
		far := newSide(func([]byte) {})
		s := &Session{Client: near, Provider: far, Controller: admitting{}, Times: DefaultTimes, Memory: egress.NewMemory(0), Tenant: "o", ID: "s", Model: "gpt-realtime"}
		ended := make(chan Result)
		go func() { ended <- s.Run(context.Background()) }()
		far.messages <- `{"type":"response.created","response":{"id":"r1","status":"in_progress"}}`
		far.messages <- `{"type":"response.done","response":{"id":"r1","status":"completed"}}`
		synctest.Wait() // the event is being sent to the client
		s.Drain()
		select {
		case <-near.closed:
			t.Error("the session ends before the client has been told of its response's end")
		default:
		}
		close(release)
		if r := <-ended; !told || r.Code != CloseGoingAway || r.Reason != Restarting {
			t.Errorf("told: %v, %+v", told, r)
		}
	})
}
