// Package local stores queues in one SQLite file: durable, with visibility timeouts, delays and
// dead letters, for a single-process gateway.
//
// One goroutine owns the file. It collects the pending operations, executes them in one
// transaction, commits and then returns all their results (group commit), so that many senders
// share one write to the disk. The file is locked: a second process is rejected.
//
// Groups take turns: a group with a long backlog does not delay the others (see turns).
package local
