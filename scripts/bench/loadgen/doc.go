// Package loadgen drives an HTTP/1.1 server that answers OpenAI-shaped calls
// and measures it from the client's side.
//
// It reads and writes HTTP by hand over plain TCP, so that it takes little of the machine
// that it shares with what it measures. Every answer is checked. It sends only to loopback
// addresses.
package loadgen
