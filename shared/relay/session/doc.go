// Package session carries a realtime session between a client and a provider: each message is
// read completely, inspected, and forwarded unchanged. A Controller admits each response and charges
// it separately.
//
// Two goroutines read, one on each side, and write to the other: a side that does not read
// blocks the other. Neither outlives Run.
package session
