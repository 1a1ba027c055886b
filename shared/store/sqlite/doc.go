// Package sqlite is the store in one SQLite file, for the laptop and for tests.
//
// One goroutine writes. It takes what is queued, does the operations one after
// the other in one database transaction, commits, and then answers all of them,
// so that many writers share one commit. Reads run beside it on read-only
// connections and see what is committed; as a writer is answered after its
// commit, a consistent read and an eventual one are the same here.
//
// The store refuses what DynamoDB refuses, so that what works here works there.
// Nothing but rows belongs in this package: no index, no SQL for its callers.
package sqlite
