// Package socket reads and writes TCP connections without telling Go's scheduler.
//
// The descriptors of package net never block: a call on one returns at once, with EAGAIN
// when there is nothing to read. Nevertheless the syscall package announces every call to
// the scheduler as one that may block. On a busy machine the runtime's monitor then takes
// processors away from goroutines that are in the middle of a short write, wakes a thread
// to use them, and does not come to rest itself. Calls that are not announced only cost
// what the system itself needs. Package net still does the waiting: deadlines, Close and
// waiting goroutines work as they do there.
//
// What must never come in: a call that may block, files, protocols.
package socket
