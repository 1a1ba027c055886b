// Package oauthclient is the gateway as a client of the authorization servers of upstreams:
// each user signs in at the server behind an MCP server once, and the gateway keeps and
// renews the tokens.
//
//	Link     the address that a user is sent to: sealed, for one user and one server
//	Find     discovery: RFC 9728, RFC 8414 and OpenID Connect
//	Client   who the gateway is there: given, a document of its own, or registered
//	Begin    the way to the authorization server: PKCE, resource, state that is good once
//	Finish   the way back: issuer, code, tokens
//	Tokens   access tokens for calls, renewed by one process at a time
//
// The record of a connection says that there is one; who removes it ends the tokens
// within two seconds. The tokens stand beside it, sealed, so that renewing them changes
// nothing that every process has read.
package oauthclient
