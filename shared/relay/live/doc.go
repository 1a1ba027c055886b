// Package live passes sessions through between a client and a provider, once the client's first
// message has named the model. A desk admits and records each charge that the provider reports,
// once, by its id; text is judged before it is sent, and audio by its transcript.
//
// Two goroutines read, one on each side, and write to the other: a side that does not read
// blocks the other. None outlives Run.
package live
