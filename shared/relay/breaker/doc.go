// Package breaker shares the circuit breakers of saved configs between processes
// through one row of the store for each version of a config. What a breaker is
// and when it opens is route's; this package knows when to read, claim and tell.
// Nothing of a request comes in here.
package breaker
