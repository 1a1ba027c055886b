// Package batchrun executes the steps of batches that the gateway runs: it reads messages of a
// queue, each of which requests one step of one batch.
//
// A batch with the window "immediate" is checked, then its rows go through the data plane's
// pipeline like separate requests, several concurrently, then its output files are written.
// Every row is a request of the key that created the batch: it counts against its limits, is
// routed, retried, cached and recorded as any other, under the batch's id as its trace. Once the
// key is revoked, or a limit is reached, rows fail with that response.
//
// A batch with the window "24h" is submitted to the provider's own batches, by the same routes
// that clients use, and polled until it has ended; then its output is stored here. Once the key
// is revoked or expires, it is canceled at the provider with the next poll, and its cost until
// then is charged.
//
// A provider's background response is polled, on behalf of the key that created it, with growing
// waits until it has ended: its usage is charged then, unless a read by the client has done so.
// See look.
//
// A step runs under a lease that is renewed while it runs. The batches of a process that died
// are found by Sweep. A row with an accepted response is not sent again; one in progress when
// the process died is.
package batchrun
