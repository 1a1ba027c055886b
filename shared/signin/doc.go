// Package signin knows the people who have signed in: their sessions. A session is an
// opaque token of which the hash is stored; what it opens is what its user may do at
// the moment of a call. It ends by itself, by its user, with its user, or by the
// settings of the organisation, and then within two seconds in every process.
//
// The ways in are packages of their own below it.
package signin
