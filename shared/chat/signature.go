package chat

import "crypto/rand"

// SignedBy returns the creator of a signature and its value without any marks. ok is false if
// it has no mark.
func SignedBy(signature string) (origin, value string, ok bool) {
	for {
		by, inner, marked := UnmarkSigned(signature)
		if !marked {
			return origin, value, ok
		}
		origin, value, ok, signature = by, inner, true, inner
	}
}

// NewCallID returns a unique id for a tool call without one. It has the form of OpenAI's ids,
// in letters that every format accepts.
func NewCallID() string { return "call_" + rand.Text() }
