// Package rehearsal is what a dry run says and is told: a request that is to be
// walked through without sending anything, and the targets that it would have.
package rehearsal
