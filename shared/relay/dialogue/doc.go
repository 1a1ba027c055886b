// Package dialogue serves responses over a WebSocket: each response.create of the client goes
// through the request pipeline as a separate request, and the events of its response are sent as
// messages. So one connection may call any provider, and all checks of requests apply to each of
// them.
//
// Responses with the same stream_id are created one after the other, those with different ones
// concurrently. A conversation with store false is remembered until the connection ends, so that
// the next response may continue it.
//
// One goroutine reads the client, one per lane calls the pipeline; none outlives Run.
package dialogue
