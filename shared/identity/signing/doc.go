// Package signing contains the keys with which the gateway signs: identities of callers for MCP
// servers (RS256), and agent cards (ES256).
//
//	Keys    the keys of an installation, created on demand, sealed in its tables and rotated
//	Key     one of them: it signs, and its public half is published
//	Minter  identity tokens for servers, cached until shortly before they expire
//
// A process with JWT_PRIVATE_KEY signs tokens with that key instead of a key from the tables.
// Without any key, requests that need a signature are rejected.
package signing
