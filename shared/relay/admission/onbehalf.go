package admission

import "gateway/shared/identity"

// Behalf says for whom the gateway makes a request that no client sent.
type Behalf struct {
	Key     string              // hash of the API key
	Closing *identity.Principal // in place of a key that is no longer valid: see Mux.Admits
	Caller  *identity.Principal // of the request that this one is a part of, in place of a key
	Request string              // set by Run: the id of the request's record

	// Settling marks a request that only looks whether something has ended, so that it can
	// be booked. No limit refuses it, no default config routes it elsewhere, no guardrail
	// reads it, and a look that books nothing leaves no record.
	Settling bool
	Booked   bool // set by Run, of such a request: it has booked what was used

	// Rows marks the transfer of a file whose rows the guardrails judge one by one, so that
	// none reads the file: see Mux.JudgeRow.
	Rows bool
}

// CarriesRows reports whether the request transfers rows that are judged one by one.
func (q *Request) CarriesRows() bool { return q.Behalf != nil && q.Behalf.Rows }

// Settles tells whether the request looks for the end of what was begun.
func (q *Request) Settles() bool { return q.Behalf != nil && q.Behalf.Settling }

// OnlyLooked tells whether it did, and found nothing to book.
func (q *Request) OnlyLooked() bool { return q.Settles() && !q.Behalf.Booked }

// Book records, for whoever the request is made for, that it has charged what was used.
func (q *Request) Book() {
	if q.Behalf != nil {
		q.Behalf.Booked = true
	}
}
