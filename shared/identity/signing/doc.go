// Package signing holds the keys with which the gateway itself signs: identities of callers
// towards servers (RS256), and cards of agents (ES256).
//
//	Keys    the keys of an installation, made once, sealed in its tables and renewed
//	Key     one of them: it signs, and its public half is published
//	Minter  tokens that tell a server who calls, kept until shortly before their end
//
// A process with JWT_PRIVATE_KEY signs tokens with that key instead of a key from the tables.
// Without any key nothing is signed, and requests that need a signature are rejected.
package signing
