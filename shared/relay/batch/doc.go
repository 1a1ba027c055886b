// Package batch stores the batches that the gateway runs itself: the rows of their files,
// their state, and the accepted responses.
//
// A batch is one item of the usage table: its sealed definition, and its progress, with a
// revision that every change must match. One process works on a batch at a time; it holds a
// lease that it renews. Every row has at most one accepted response, which is written under the
// batch's id and the row's line if none exists: duplicate, late or reordered messages, and a
// second worker, change nothing.
//
// Unfinished batches are in a due list, so that a batch with a lost message, or with a process
// that died, is found and resumed.
//
// The same queue carries a provider's background responses, each in the message of its next
// poll: see PolledResponse.
//
// The package also stores files, and notes on jobs, for providers that cannot store them, and the
// files of batches that the gateway runs itself.
package batch
