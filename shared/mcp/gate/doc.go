// Package gate serves registered servers to clients of the Model Context Protocol. It bridges
// protocol versions with and without sessions: the version of the client and that of the server
// are independent. Session state is sealed into the ids that clients send, so that any process
// can serve a request.
//
//	client - server
//	stateless - stateless   relayed; opaque states sealed
//	stateless - sessions    the gateway is the server's client, with a session for each
//	                        caller that declares no capability of the client
//	sessions - stateless    the gateway answers initialize; the id contains the capabilities
//	sessions - sessions     relayed; the id contains the server's session id
//
// A virtual server supports both kinds of clients and calls its members like a client without a
// session; see DECISION.md of shared/mcp.
//
// Listing and calling use the same authorization, see package authz. Do not add limits,
// guardrails or records here: the Pipeline provides them.
package gate
