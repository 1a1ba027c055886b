// Package reused is the cache of answers on the walk of one request: what must be equal
// or mean the same for an answer to be used again, which answers are kept, and what is
// told of it.
package reused
