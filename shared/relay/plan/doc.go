// Package plan resolves the config of a request after its body is read: the compiled targets and
// the position in them, or that the gateway serves it without a provider. Later stages get the
// next target from it and report the outcome of the last one.
//
// Breakers share the circuit breakers of saved configs between processes through one row of the
// store for each version of a config; package route defines when a breaker opens. Patience
// limits the times of one attempt: until the head of the response, until the first content of
// its stream, and between two events.
package plan
