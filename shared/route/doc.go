// Package route is the config object of a request's routing: it parses and validates it,
// compiles it into an immutable Tree of targets and traverses the tree, one target after the
// other, as responses arrive.
//
// A Config is the form that users write and that is stored. Compile resolves all inheritance,
// so that a Leaf contains everything about one call. A Traversal is the state of one request: it
// draws, matches conditions, applies the stop rules and skips targets with an open circuit
// breaker. Retries are a pure Schedule.
//
// Circuit breakers. A target that failed too often is open: single, fallback and loadbalance
// strategies skip it, conditional ones do not. After the cooldown one request at a time probes
// it; its response closes or opens it again. If all targets are open, the breakers are ignored.
// Original indices do not change. Circuits contains the states of a process; Pending, Settle
// and Merge exchange them between processes.
//
// Sticky rules guarantee that only the values of the hashed fields choose the target, by
// weighted rendezvous hashing. So every process chooses the same one without a store, as long
// as weights and targets do not change and the target is not skipped. While it is skipped, a
// substitute is used, the same one in every process. When weights change, a process uses its
// remembered picks until their ttl ends (limited, not extended by use). Another process, or one
// that has just started, uses the new weights. Only keys of targets that were removed, or that
// lost weight, move.
//
// Do not add: sending requests, loading saved providers or guardrails, the clock. The caller
// provides randomness, breaker states and sticky memory.
package route
