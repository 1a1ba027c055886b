// Package tools serves conversations with tools of the workspace's MCP servers: it lists the
// tools, offers them to the model as functions, calls those that the model requests, and
// continues the conversation until the model responds without such a call.
//
// The client names a server by a tool of its request:
//
//	{"type":"mcp","server_label":"@gateway-mcp/<slug of the server>"}
//
// The turns of the model are requests in the client's own dialect, so every provider that serves
// that dialect can be used; lists and calls are requests to the gateway's MCP proxy. The client
// sees them in the format that its provider uses for hosted calls: items mcp_list_tools,
// mcp_call and mcp_approval_request of Responses, blocks mcp_tool_use and mcp_tool_result of
// Messages. When the client sends them back, they are converted to the model's own calls and
// their results.
//
//	request   reads what the request selects
//	server    lists and calls over the protocol
//	names     functions for the tools
//	run       turn by turn
//	responses, messages
//	          the two dialects, buffered and as streams
//
// If the model also calls a function of the client, the MCP calls are made and the turn ends:
// the client continues. A run is limited: see Limits. In the last turn that they allow, the
// model may not call tools.
//
// MCPRoutes and MCPCalls let the MCP gate serve routes of the pipeline: those that clients of the
// protocol call, and the one by which the gateway calls tools for a model.
package tools
