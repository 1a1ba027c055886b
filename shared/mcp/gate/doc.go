// Package gate serves registered servers to clients of the Model Context Protocol. It
// bridges the protocol's eras: which one a client speaks and which its server speaks are
// settled apart. Nothing of a session is kept in the process that another process would
// need: what must last is sealed into the ids that clients bring back.
//
//	client - server
//	stateless - stateless   relayed; opaque states sealed
//	stateless - sessions    the gateway is the server's client, with a session of each
//	                        caller, of which nothing is declared that needs the client
//	sessions - stateless    the gateway answers initialize; the id says what was declared
//	sessions - sessions     relayed; the id holds the server's own
//
// A virtual server is a server of either era by itself, and calls its members as for a
// client without session; see DECISION.md of the room.
//
// One function decides both what is listed and what may be called; see entitled. What must
// not come in: limits, guardrails and records, which the walk brings.
package gate
