// Package toolbox is the administration as an MCP server: each operation of the OpenAPI
// document with a JSON response is a tool. A tool call is an API call with the caller's
// credential: its scopes and its role apply, and it is recorded in the audit log.
//
// Read-only tools are always listed. Tools that change something are listed if the address
// contains writes=true. A list has the tools that the scopes of the caller's credential allow;
// the API checks everything else when a tool is called.
//
// Not here: operations without a credential, operations of other protocols (SCIM) or of user
// sessions, and requests to models.
package toolbox
