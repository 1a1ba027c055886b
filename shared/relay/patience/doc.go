// Package patience bounds the times of one attempt at a provider: until the head
// of its answer, until the first content of its stream, and between two pieces of
// it. Which bounds hold is the request's and the config's to say.
package patience
