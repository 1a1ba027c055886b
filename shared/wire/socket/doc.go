// Package socket reads and writes TCP connections without telling Go's scheduler.
//
// The descriptors of package net never block: a call on one returns at once, with
// EAGAIN when there is nothing to be had. The syscall package announces every call
// as one that may block all the same. On a busy machine the runtime's monitor then
// takes processors away from goroutines that are in the middle of a short write,
// wakes a thread to use them, and does not come to rest itself. Calls that are not
// announced cost what the system asks for and nothing beside. Waiting is still the
// net package's: deadlines, Close and a goroutine that waits are as they are there.
//
// What must never come in: a call that may block, files, protocols.
package socket
