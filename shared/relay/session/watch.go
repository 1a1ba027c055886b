package session

import (
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
)

// Watch periodically checks a session: whether it may continue, and whether both peers are
// alive. Between two checks it has no goroutine.
type Watch struct {
	Times   Times
	Checker Checker
	Done    func() bool          // reports that the checks can end
	Refuse  func(f *fault.Fault) // is called with the reason why the session may not continue
	Ends    []Conn               // the connections that are pinged

	mu     sync.Mutex
	timer  *time.Timer
	pinged time.Time
	over   bool
	busy   sync.WaitGroup
}

// Checker checks whether a session may continue.
type Checker interface {
	// Check returns an error if the session may not continue.
	Check() error
	// Fail records failures that the client does not see.
	Fail(where string, err error)
}

// Start starts the checks.
func (w *Watch) Start() {
	w.pinged = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.Times.Check, w.tick)
}

func (w *Watch) tick() {
	w.mu.Lock()
	if w.over {
		w.mu.Unlock()
		return
	}
	w.busy.Add(1)
	w.mu.Unlock()
	defer w.busy.Done()
	if !w.Done() {
		w.look()
	}
	w.mu.Lock()
	if !w.over {
		w.timer.Reset(w.Times.Check)
	}
	w.mu.Unlock()
}

// look checks whether the session may go on, and pings both ends when it is time.
func (w *Watch) look() {
	if err := w.Checker.Check(); err != nil {
		f := fault.From(err)
		if Refused(f) {
			w.Refuse(f)
			return
		}
		w.Checker.Fail("check of a session", err)
	}
	if time.Since(w.pinged) >= w.Times.Ping {
		w.pinged = time.Now()
		for _, c := range w.Ends {
			_ = c.Ping() // a peer that is gone is detected by its reader
		}
	}
}

// End stops the checks and waits for one in progress.
func (w *Watch) End() {
	w.mu.Lock()
	w.over = true
	w.timer.Stop()
	w.mu.Unlock()
	w.busy.Wait()
}

// Controller admits and charges the responses of a session.
type Controller interface {
	// Reserve checks that a response may be made and reserves the most it can cost. The error is a
	// fault of the caller's key, of a limit or of a budget.
	Reserve(what *ResponseLimits) (Reservation, error)
	// ChargeLate charges a response that was made without a reservation.
	ChargeLate(d *realtime.Done, event []byte)
	// ChargeTranscript charges the transcription of a client's audio, which is reported after it is done.
	ChargeTranscript(t *realtime.Transcript, model string, event []byte)
	// Allows reports whether a model may be used in addition to the session's own.
	Allows(model string) error
	// Names rejects a client's message that names an object that another workspace has stored at
	// the provider.
	Names(message []byte) error
	// RecordHandle records the owner of the session that a handle resumes, before the client gets the
	// handle.
	RecordHandle(handle string) error
	Checker
}

// Guard judges the content of a session.
type Guard interface {
	// JudgesResponses reports whether anything is judged now.
	JudgesResponses() bool
	// Client judges a client event. It returns its replacement, nil for the event itself. An
	// error rejects the event.
	Client(e *realtime.Event, hears bool) ([]byte, error)
	// Provider judges a provider event. It is called by one goroutine.
	Provider(e *realtime.Event) Judgement
	// Refusal returns the event that reports a fault of Client to the client.
	Refusal(f *fault.Fault, id, about string) []byte
}

// Judgement is the result of judging a provider event.
type Judgement struct {
	Unchanged bool     // it is forwarded unchanged
	Replies   [][]byte // sent to the client instead
	Back      [][]byte // sent to the provider
	Body      []byte   // the event as it is charged; nil: unchanged
	Err       error    // the session must end: there is no memory for held content
}

// ResponseLimits is a response that is to be made.
type ResponseLimits struct {
	Input          int64  // most tokens that it may read
	UnboundedField string // field of the session by which the provider adds input of any length; "": none
	Output         int64  // most output tokens; 0: no limit is stated
	// Unbounded: it states that it has no limit, whatever that of the session is.
	Unbounded bool
	Event     []byte // of the client that requests it; nil: the provider started it automatically

	Seconds int64  // the most it may last, where time is charged
	Model   string // that it is charged as; "": the session's
}

// Reservation is a response in progress, with its reservation. Each is ended once.
type Reservation interface {
	// End charges the response. event is the provider's last event about it.
	End(d *realtime.Done, event []byte)
	// Drop releases the reservation: the provider made nothing. rejected is the provider's own
	// rejection, nil without one.
	Drop(refused *fault.Fault)
}

// Refused reports whether a fault ends the session: the key is invalid or the budget is
// exhausted. Other faults reject one response.
func Refused(f *fault.Fault) bool {
	switch f.Code {
	case fault.Unauthorized, fault.KeyExpired, fault.KeyPaused, fault.NotAllowed, fault.ModelNotAllowed, fault.BudgetExhausted, fault.UnpricedModel, fault.UnboundedRequest, fault.SubscriptionExhausted, fault.NotFound, fault.ReferenceNotFound:
		return true
	}
	return false
}

// Names returns the names by which a client may repeat the model of its session: those that
// it opened the session by, each with and without the saved provider. slug is the saved
// provider; "" for none.
func Names(slug string, opened ...string) (names []string) {
	for _, name := range opened {
		if name == "" {
			continue
		}
		model := name
		if rest, ok := strings.CutPrefix(name, "@"); ok {
			if _, below, ok := strings.Cut(rest, "/"); ok {
				model = below
			}
		}
		names = append(names, name, model)
		if slug != "" {
			names = append(names, "@"+slug+"/"+model)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
