// Package anthropic is the Anthropic Messages dialect, on the client's and on
// the provider's side, plain and streamed.
//
// What it guarantees to providers: all results of one turn stand first in one
// message, signed reasoning stands unchanged in front of the calls that follow
// it, no block is empty, and the bytes of the conversation are the same on each
// turn up to what is new. What it guarantees to clients: blocks of a stream do
// not overlap and are numbered without gaps.
package anthropic
