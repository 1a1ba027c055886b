// Package realtime serves sessions over WebSockets: it runs guardrails on their content, passes
// Live sessions through, and serves responses over a WebSocket. Package session carries the
// messages of a session.
//
// # Guardrails
//
// A Guard runs guardrails on the content of a realtime session: client text before it is
// sent, client audio once it is transcribed, and responses, before any of them is sent or once
// they have ended.
//
// The guardrails are looked up for each client event on arrival. For a response they are looked
// up at its start, and the same guardrails judge it to its end.
//
// A held response is sent all at once, including its audio, which can only be judged by its
// transcript. Denied client input is never forwarded; denied audio, which the provider already
// has, is removed from the conversation, and the response to it is ended.
//
// # Live sessions
//
// A LiveSession passes messages through between a client and a provider, once the client's first
// message has named the model. A controller admits and records each charge that the provider reports,
// once, by its id; text is judged before it is sent, and audio by its transcript.
//
// Two goroutines read, one on each side, and write to the other: a side that does not read
// blocks the other. None outlives Run.
//
// # Responses over a WebSocket
//
// A Dialogue serves responses over a WebSocket: each response.create of the client goes
// through the request pipeline as a separate request, and the events of its response are sent as
// messages. So one connection may call any provider, and all checks of requests apply to each of
// them.
//
// Responses with the same stream_id are created one after the other, those with different ones
// concurrently. A conversation with store false is remembered until the connection ends, so that
// the next response may continue it.
//
// One goroutine reads the client, one per lane calls the pipeline; none outlives Run.
//
// SocketMaker makes the connections of realtime sessions by a library for
// WebSockets. Only processes that can hold a connection for long link it.
package realtime
