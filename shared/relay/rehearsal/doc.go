// Package rehearsal holds the request and the response of a dry run, which goes through the
// pipeline without sending anything, and returns the targets that a request would have.
package rehearsal
