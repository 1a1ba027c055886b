// Package route is the config object of a request's routing: it parses and
// validates it, compiles it into an immutable Tree of targets and walks the
// tree, one target after the other, as answers come in.
//
// A Config is what people write and what is stored. Compile resolves all
// inheritance, so that a Leaf says everything about one call. A Walk is the
// state of one request: it draws, matches conditions, applies the stop rules
// and leaves targets with an open circuit breaker out. Retries are a pure
// Schedule.
//
// Circuit breakers. A target that failed too often is open: it is left out of
// single, fallback and loadbalance strategies, not of conditional ones. After
// the cooldown one request at a time probes it; its answer closes or opens it
// again. Where all targets are open the breakers are bypassed. Original indices
// stay. Circuits keeps the states of a process; Pending, Settle and Merge carry
// them between processes.
//
// Sticky rules promise this: the values of the hashed fields alone choose the
// target, by weighted rendezvous hashing, so every process chooses the same one
// and no store is asked, as long as weights and targets stand and the target is
// not left out. While it is left out, a stand-in is used, the same one in every
// process. When weights change, a process keeps to the picks that it remembers
// until their ttl is over (bounded, not drawn out by use); another process, and
// one that has just started, goes by the new weights. Only keys of targets that
// went, or whose share shrank, move.
//
// What must never come in: sending requests, loading saved providers or
// guardrails, the clock. Randomness, breaker states and sticky memory are
// given by the caller.
package route
