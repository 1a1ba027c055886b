package admitted

import "gateway/shared/identity"

// Behalf is who a request is made for that came from no client.
type Behalf struct {
	Key     string              // hash of the API key
	Closing *identity.Principal // in place of a key that is no longer valid: see Mux.Admits
	Caller  *identity.Principal // of the request that this one is a part of, in place of a key
	Request string              // set by Run: the id of the request's record
}
