// Package plan resolves the config of a request whose body is read: the compiled targets and the
// position in them, or that the gateway answers itself. Later stages ask it for the next target
// and report the outcome of the last one.
//
// Breakers share the circuit breakers of saved configs between processes through one row of the
// store for each version of a config; package route defines when a breaker opens. Patience
// bounds the times of one attempt: until the head of the response, until the first content of
// its stream, and between two events.
package plan
