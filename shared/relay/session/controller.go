package session

import (
	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
)

// Controller admits and charges the responses of a session.
type Controller interface {
	// Begin checks that a response may be made and reserves the most it can cost. The error is a
	// fault of the caller's key, of a limit or of a budget.
	Begin(what *Wanted) (Turn, error)
	// ChargeLate charges a response that was made without a reservation.
	ChargeLate(d *realtime.Done, event []byte)
	// ChargeTranscript charges the transcription of a client's audio, which is reported after it is done.
	ChargeTranscript(t *realtime.Transcript, model string, event []byte)
	// Allows reports whether a model may be used in addition to the session's own.
	Allows(model string) error
	// Names rejects a client's message that names an object that another workspace has stored at
	// the provider.
	Names(message []byte) error
	// Made records the owner of the session that a handle resumes, before the client gets the
	// handle.
	Made(handle string) error
	Checker
}

// Guard judges the content of a session.
type Guard interface {
	// Judges reports whether anything is judged now.
	Judges() bool
	// Client judges a client event. It returns its replacement, nil for the event itself. An
	// error rejects the event.
	Client(e *realtime.Event, hears bool) ([]byte, error)
	// Provider judges a provider event. It is called by one goroutine.
	Provider(e *realtime.Event) Judged
	// Refusal returns the event that reports a fault of Client to the client.
	Refusal(f *fault.Fault, id, about string) []byte
}

// Judged is the result of judging a provider event.
type Judged struct {
	Stays   bool     // it is forwarded unchanged
	Replies [][]byte // sent to the client instead
	Back    [][]byte // sent to the provider
	Body    []byte   // the event as it is charged; nil: unchanged
	Err     error    // the session must end: there is no memory for held content
}

// Wanted is a response that is to be made.
type Wanted struct {
	Input  int64  // most tokens that it may read
	HeldIn string // field of the session by which the provider adds input of any length; "": none
	Output int64  // most output tokens; 0: no limit is stated
	// Unbounded: it states that it has no limit, whatever that of the session is.
	Unbounded bool
	Event     []byte // of the client that requests it; nil: the provider started it automatically

	Seconds int64  // the most it may last, where time is charged
	Model   string // that it is charged as; "": the session's
}

// Turn is a response in progress, with its reservation. Each is ended once.
type Turn interface {
	// End charges the response. event is the provider's last event about it.
	End(d *realtime.Done, event []byte)
	// Drop releases the reservation: the provider made nothing. refused is the provider's own
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
