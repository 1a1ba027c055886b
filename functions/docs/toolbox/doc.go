// Package toolbox is the administration as an MCP server: each operation of the OpenAPI
// document that answers with JSON is a tool. A tool is called through the API itself with
// the caller's own credential: its scopes and its role hold, and its record stands in the
// audit log.
//
// Tools that only read are there always; those that change something where the address
// asks for them (writes=true). A list has those that the scopes of the caller's
// credential allow; what else holds, the API says at the call.
//
// Not here: operations without a credential, of other protocols (SCIM), of sessions of
// people, and requests to models.
package toolbox
