// Package oauthclient implements the gateway's role as an OAuth client of the authorization
// servers of MCP servers. Each user signs in once; the gateway stores and renews the tokens.
//
//	Link     the sealed address where one user signs in at one server
//	Find     discovery: RFC 9728, RFC 8414 and OpenID Connect
//	Client   the client: configured, a metadata document, or registered
//	Begin    the authorization request: PKCE, resource, single-use state
//	Finish   the authorization response: issuer, code, tokens
//	Tokens   access tokens for calls, renewed by one process at a time
//
// Deleting the record of a connection ends its tokens within two seconds. The sealed tokens are
// in a separate row, so that renewal does not change cached records.
package oauthclient
