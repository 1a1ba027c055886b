// Package window judges a stream while it is on its way. It stands between what reads
// the provider's events and what writes the client's: a window gives a text on once what
// follows it has been judged with it, a hold nothing before the whole has been.
package window
