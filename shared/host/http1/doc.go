// Package http1 serves HTTP/1.1 at low CPU cost: one goroutine per connection, none per
// request, and pooled buffers that a connection holds only while it works.
//
// It supports requests of the common form: HTTP/1.1, a usual method, a path, one Host,
// and a body with one Content-Length or none. A connection with any other request, odd or
// malformed, is handed over to a net/http server permanently, with the bytes read so far,
// before anything in that request was trusted. So every rejection is net/http's, and
// messages have a single interpretation: requests accepted here are parsed as by
// net/http, which a test compares.
//
// Handlers get the same as from net/http: a separate *http.Request with a context that
// ends when the client disconnects or the handler returns, and a ResponseWriter that is
// an http.Flusher. A body that is unread when the response begins is read to its end
// first, unless EnableFullDuplex of http.ResponseController is set. The strings of a
// request alias one copy of its head, at most 16 KB, which lives as long as any of them.
// There is no hijacking; net/http serves upgrades, and HTTP/2 without TLS, which begins
// with a preface (prior knowledge). One watcher per server detects
// disconnected clients: it checks the connections with requests that take longer than a
// moment.
package http1
