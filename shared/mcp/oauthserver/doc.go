// Package oauthserver is what people allow clients of the Model Context Protocol: OAuth 2.1
// with the gateway as authorization server.
//
//	Client    who asks: described by a document at its own address (CIMD), or by its id
//	          itself (RFC 7591, registration without a record)
//	Grant     one permission: of a person, to a client, for one server
//	tokens    an authorization code, then an access token and a refresh token of the grant
//
// Tokens are opaque and stored by their hash. An access token opens one server, as long
// as its user is a member of the workspace; a refresh token is good once, and a second use
// ends its grant. Nothing is kept in the process. What must not come in: HTTP towards
// clients, pages, audit records.
package oauthserver
