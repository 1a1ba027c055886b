// Package dialogue serves responses over a WebSocket: each response.create of the client
// is taken through the walk as a request of its own, and the events of its answer come
// back as messages. So one connection may ask any provider, and everything that holds for
// requests holds for each of them.
//
// Responses with the same stream_id are made one behind the other, those of different
// ones side by side. What a client says with store false is remembered for as long as the
// connection lasts, so that the next response may go on from there.
//
// One goroutine reads the client, one a lane asks; none outlives Run.
package dialogue
