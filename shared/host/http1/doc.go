// Package http1 serves HTTP/1.1 at a small cost in processor time: one goroutine
// a connection, no second one a request, buffers from a pool that a connection
// holds only while it works.
//
// It takes requests of the common shape: HTTP/1.1, a usual method, a path, one
// Host, a body by one Content-Length or none. A connection that brings anything
// else, odd or malformed, is handed to a net/http server for good, with the bytes
// that were read, before anything of that request was believed. So every refusal
// is net/http's own, and there is one reading of a message, not two: what is taken
// here is what net/http reads in the same way, and a test compares the two.
//
// Handlers get what net/http gives them: an *http.Request of their own whose
// context ends when the client goes away or the handler returns, and a
// ResponseWriter that is an http.Flusher. A body that is left when the answer begins is
// read to its end first, unless EnableFullDuplex of http.ResponseController says that
// somebody goes on reading it. The strings of a request are parts of
// one copy of its head, 16 KB at most, which lives as long as any of them. There
// is no hijacking; upgrades are net/http's. That a client went away is seen by one
// watcher a server, which looks at the connections whose requests take longer than
// a moment.
package http1
