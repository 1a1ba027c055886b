// Package session carries a realtime session between a client and a provider: each
// message is read whole, looked at, and sent on as it came. What is said of money is
// asked of a Desk, which books each response by itself.
//
// Two goroutines read, one each side, and write to the other: a side that does not read
// holds the other back. Neither outlives Run.
package session
