// Package signin has the sessions of people who have signed in. A session is an opaque
// token whose hash is stored. It allows what its user may do at the moment of a call. It
// ends by itself, is ended by its user or with its user, or ends by the settings of the
// organisation; then no process accepts it after two seconds.
//
// The ways to sign in are packages below this one.
package signin
