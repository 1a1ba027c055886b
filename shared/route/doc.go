// Package route is the config object of a request's routing: it parses and
// validates it, compiles it into an immutable Tree of targets and walks the
// tree, one target after the other, as answers come in.
//
// A Config is what people write and what is stored. Compile resolves all
// inheritance, so that a Leaf says everything about one call. A Walk is the
// state of one request: it draws, matches conditions, applies the stop rules
// and skips open circuit breakers. Retries are a pure Schedule.
//
// What must never come in: sending requests, loading saved providers or
// guardrails, the clock. Randomness, breaker states and sticky memory are
// given by the caller.
package route
