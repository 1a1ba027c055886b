// Package route is the config object of a request's routing: it parses and
// validates it, compiles it into an immutable Tree of targets and walks the
// tree, one target after the other, as answers come in.
//
// A Config is what people write and what is stored. Compile resolves all inheritance, so
// that a Leaf says everything about one call. A Walk is the state of one request: it draws,
// matches conditions, applies the stop rules and skips targets with an open circuit
// breaker. Retries are a pure Schedule.
//
// Circuit breakers. A target that failed too often is open: single, fallback and
// loadbalance strategies skip it, conditional ones do not. After the cooldown one request
// at a time probes it; its answer closes or opens it again. If all targets are open, the
// breakers are ignored. Original indices stay. Circuits keeps the states of a process;
// Pending, Settle and Merge carry them between processes.
//
// Sticky rules promise this: only the values of the hashed fields choose the target, by
// weighted rendezvous hashing. So every process chooses the same one without asking a
// store, as long as weights and targets do not change and the target is not skipped. While
// it is skipped, a stand-in is used, the same one in every process. When weights change, a
// process keeps the picks that it remembers until their ttl is over (bounded, not extended
// by use). Another process, or one that has just started, uses the new weights. Only keys
// of targets that were removed, or whose share shrank, move.
//
// What must never come in: sending requests, loading saved providers or guardrails, the
// clock. The caller provides randomness, breaker states and sticky memory.
package route
