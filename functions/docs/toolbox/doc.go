// Package toolbox is the administration as an MCP server: each operation of the OpenAPI
// document that answers with JSON is a tool. A tool is called through the API itself with
// the caller's own credential: its scopes and its role hold, and its record stands in the
// audit log.
//
// Tools that only read are always listed. Tools that change something are listed where the
// address asks for them (writes=true). A list has the tools that the scopes of the caller's
// credential allow; the API checks everything else when a tool is called.
//
// Not here: operations without a credential, operations of other protocols (SCIM) or of
// people's sessions, and requests to models.
package toolbox
