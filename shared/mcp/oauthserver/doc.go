// Package oauthserver is the OAuth 2.1 authorization server for clients of MCP servers.
//
//	Client    described by a metadata document at its id (CIMD), or by the id itself
//	          (RFC 7591, registration without a record)
//	Grant     a user's authorization of a client for one server
//	tokens    an authorization code, then an access token and a refresh token of the grant
//
// Tokens are opaque and stored as hashes. An access token is valid for one server while its
// user is a member of the workspace. A refresh token is valid once; reusing it ends the grant.
// Do not add HTTP handlers, pages or audit records here.
package oauthserver
