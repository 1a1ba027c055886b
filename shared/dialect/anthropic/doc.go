// Package anthropic is the Anthropic Messages dialect, on the client's and on the
// provider's side, plain and streamed.
//
// Guarantees to providers: all results of one turn are first in one message, signed
// reasoning is unchanged and before the calls that follow it, no block is empty, and the
// bytes of the conversation are the same on each turn except for its new end. Guarantees
// to clients: blocks of a stream do not overlap and are numbered without gaps.
package anthropic
