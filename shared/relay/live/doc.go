// Package live carries sessions that are passed through as they are between a client and a
// provider, once the client's first message has named the model. What the provider tells of
// money is asked of a desk and booked there, each thing once, by its own id; what is written
// is judged before it is sent, and what is spoken as it is written down.
//
// Two goroutines read, one each side, and write to the other: a side that does not read
// holds the other back. None outlives Run.
package live
