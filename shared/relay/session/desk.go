package session

import (
	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
)

// Desk is who is asked about a session.
type Desk interface {
	// Begin makes sure that a response may be made and reserves what it can cost. The
	// error is a fault of the caller's key, of a limit or of a budget.
	Begin(what *Wanted) (Turn, error)
	// Late books a response that was made though nothing was reserved for it.
	Late(d *realtime.Done, event []byte)
	// Heard books what hearing a client's words has used, which is told once it is done.
	Heard(t *realtime.Transcript, model string, event []byte)
	// Allows tells whether a model may be used beside the session's own.
	Allows(model string) error
	// Names refuses a client's message that names what another workspace has stored at the
	// provider.
	Names(message []byte) error
	// Made notes whose the session is that a handle resumes, before the client gets it.
	Made(handle string) error
	Checker
}

// Guard judges what is said in a session.
type Guard interface {
	// Judges tells whether anything is judged now.
	Judges() bool
	// Client judges an event of the client's: what is sent in its place, nil for the event
	// itself. The error refuses it.
	Client(e *realtime.Event, hears bool) ([]byte, error)
	// Provider judges an event of the provider's. It is asked by one goroutine.
	Provider(e *realtime.Event) Judged
	// Refusal is the event that tells the client of a fault of Client's.
	Refusal(f *fault.Fault, id, about string) []byte
}

// Judged is what becomes of an event of the provider's.
type Judged struct {
	Stays bool     // it is sent on as it came
	Told  [][]byte // to the client in its place
	Back  [][]byte // to the provider
	Body  []byte   // of it as it is booked; nil: as it came
	Err   error    // the session cannot go on: there is no memory for what is held
}

// Wanted is a response that is to be made.
type Wanted struct {
	Input  int64  // most tokens that it may read
	HeldIn string // field of the session by which the provider adds input of any length; "": none
	Output int64  // most tokens that it may make; 0: no bound is stated
	Event  []byte // of the client that asks for it; nil: the provider has begun it by itself

	Seconds int64  // the most that it may last, where time is charged
	Model   string // that it is charged as; "": the session's
}

// Turn is a response that has begun, with what is reserved for it. Each is ended once.
type Turn interface {
	// End books how it ended. event is the provider's last word.
	End(d *realtime.Done, event []byte)
	// Drop gives back what was reserved: the provider made nothing. refused is its own
	// refusal, nil without one.
	Drop(refused *fault.Fault)
}

// Refused tells whether a fault ends the session: the key or the money is gone. Others
// refuse one response.
func Refused(f *fault.Fault) bool {
	switch f.Code {
	case fault.Unauthorized, fault.KeyExpired, fault.NotAllowed, fault.ModelNotAllowed, fault.BudgetExhausted, fault.UnpricedModel, fault.UnboundedRequest, fault.SubscriptionExhausted, fault.NotFound, fault.ReferenceNotFound:
		return true
	}
	return false
}
