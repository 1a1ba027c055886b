package admission

import "gateway/shared/identity"

// Behalf names the principal of a request that the gateway itself makes.
type Behalf struct {
	Key     string              // hash of the API key
	Closing *identity.Principal // instead of a key that is no longer valid: see Mux.Admits
	Caller  *identity.Principal // of the parent request, instead of a key
	Request string              // set by Run: the id of the request's record

	// Settling marks a request that only polls for an end, so that it can be charged. No limit
	// rejects it, no default config routes it elsewhere, no guardrail reads it, and a poll
	// without a charge leaves no record.
	Settling bool
	Charged  bool // set by Run, of such a request: it has charged the usage

	// Rows marks the transfer of a file with rows that the guardrails judge one by one, so that
	// none reads the file: see Mux.JudgeRow.
	Rows bool
}

// CarriesRows reports whether the request transfers rows that are judged one by one.
func (q *Request) CarriesRows() bool { return q.Behalf != nil && q.Behalf.Rows }

// Settles reports whether the request polls for the end of earlier work.
func (q *Request) Settles() bool { return q.Behalf != nil && q.Behalf.Settling }

// OnlyLooked reports whether it was such a poll without a charge.
func (q *Request) OnlyLooked() bool { return q.Settles() && !q.Behalf.Charged }

// Prices records that the request has charged the usage, for its initiator.
func (q *Request) Prices() {
	if q.Behalf != nil {
		q.Behalf.Charged = true
	}
}
