// Package batchrun does the steps of batches that the gateway runs: it reads
// messages of a queue, each of which asks for one step of one batch.
//
// A batch with the window "immediate" is checked, then its rows go through the
// data plane's walk like requests of their own, some at a time, then its files of
// output are written. Every row is a request of the key that made the batch: it
// counts against its limits, is routed, retried, cached and recorded as any other,
// under the batch's id as its trace. Once the key is revoked, or a limit is
// reached, rows fail with that answer.
//
// A batch with the window "24h" is handed to the provider's own batches, by the
// same routes that clients use, and read until it has ended; then its output is
// kept here. Once the key is revoked or expires, it is cancelled at the provider
// with the next look at it, and what it cost until then is booked.
//
// A response that a provider makes in the background is looked at, on behalf of the
// key that made it, with growing waits until it has ended: its usage is booked then,
// unless a read of the client's has done so. See look.
//
// A step is done under a lease that is renewed while it runs. What a process that
// died has left is found by Sweep. A row whose answer was accepted is not sent
// again; one that was under way when the process died is.
package batchrun
