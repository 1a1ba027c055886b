// Package spoken has guardrails judge what is said in a realtime session: what a client
// writes before it is sent, what it has said by voice once that was written down, and
// what a response says, before any of it is sent or once it is over.
//
// The guardrails are looked up for each event of a client's when it comes. For a response they
// are looked up when it begins, and the same guardrails judge it to its end.
//
// A response that is held comes as a whole: its sound, too, which nobody can judge but by
// its transcript. What is denied of a client's never leaves; what was heard already is
// taken out of the conversation, and the response to it is ended.
package spoken
