// Package sqlite is the store in one SQLite file, for a single machine and for tests.
//
// One goroutine writes. It takes the queued operations, does them sequentially in one
// database transaction, commits, and then answers all of them, so that many writers share
// one commit. Reads run beside it on read-only connections and see committed data. A
// writer is answered after its commit, so a consistent read and an eventual one are the
// same here.
//
// Rows of the rate and spend tables change with every limited request. Updates change them
// in memory and append the change to a write-ahead log (rowCache); DECISION.md states what
// a crash can lose.
//
// The store rejects what DynamoDB rejects, so that what works here works there too. Only
// rows belong in this package: no index, and no SQL for its callers.
package sqlite
