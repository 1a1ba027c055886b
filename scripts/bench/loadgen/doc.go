// Package loadgen drives an HTTP/1.1 server that answers OpenAI-shaped calls
// and measures it from the client's side.
//
// It speaks HTTP by hand over plain TCP, so that it costs little of the machine
// that it shares with what it measures. Every answer is checked. It sends to
// loopback addresses only.
package loadgen
