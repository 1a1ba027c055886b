// Package managed holds what the gateway keeps of batches that it runs itself:
// the rows of their files, their state, and the answers that were accepted.
//
// A batch is one item of the table of usage: what was asked, sealed, and how far
// it has come, with a revision that every change must have seen. One process works
// on a batch at a time; it holds a lease that it renews. Every row has at most one
// accepted answer, which is written under the batch's id and the row's line if
// none is there: messages that come twice, late or in another order, and a second
// worker, change nothing.
//
// Batches that have not ended stand in a due list, so that a batch whose message
// was lost, or whose process died, is found and gone on with.
//
// The same queue carries responses that a provider makes in the background, each
// in the message of its next look: see Awaited.
package managed
