// Package local keeps queues in one SQLite file: durable, with visibility,
// delays and dead letters, for a gateway that is one process.
//
// One goroutine owns the file. It takes the operations that have gathered, does them in one
// transaction, commits and then answers all of them (group commit), so that many senders
// share one write to the disk. The file is locked: a second process is refused.
//
// Groups take turns: a group with a long backlog does not delay the others (see turns).
package local
