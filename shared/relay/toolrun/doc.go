// Package toolrun answers requests of conversations whose tools are those of MCP servers
// of the caller's workspace: it lists them, offers them to the model as functions, calls
// those that the model asks for, and has the model go on, until it answers without such a
// call.
//
// The client names a server by a tool of its request:
//
//	{"type":"mcp","server_label":"@gateway-mcp/<slug of the server>"}
//
// The turns of the model are requests in the client's own shape, so that every provider
// can be asked that such a request can be sent to; lists and calls are requests to the
// gate of MCP servers. What is called is shown to the client as its provider shows calls
// that it makes itself: items mcp_list_tools, mcp_call and mcp_approval_request of
// responses, blocks mcp_tool_use and mcp_tool_result of messages. Sent back, they become
// the model's own calls and their results again.
//
//	wanted    what the request asks for
//	server    lists and calls over the protocol
//	names     functions for the tools
//	run       turn by turn
//	responses, messages
//	          the two shapes, plain and as streams
//
// Where a call of a function of the client's stands beside one of these, these are made
// and the turn ends: the client goes on. A run is bounded: see Bounds. In the last turn
// that they allow the model may call nothing.
package toolrun
