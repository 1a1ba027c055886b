package chat

import "crypto/rand"

// SignedBy returns who made a signature, and its value, inside of all marks that were put around
// it. ok is false if it has no mark.
func SignedBy(signature string) (origin, value string, ok bool) {
	for {
		by, inner, marked := UnmarkSigned(signature)
		if !marked {
			return origin, value, ok
		}
		origin, value, ok, signature = by, inner, true, inner
	}
}

// NewCallID returns a unique id for a tool call that the provider gave none. It has the form of
// OpenAI's ids, in letters that every wire takes.
func NewCallID() string { return "call_" + rand.Text() }
