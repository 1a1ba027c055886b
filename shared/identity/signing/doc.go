// Package signing holds the keys that the gateway itself signs with: identities of
// callers towards servers (RS256), and cards of agents (ES256).
//
//	Keys    the keys of an installation, made once, sealed in its tables and renewed
//	Key     one of them: it signs, and its public half is published
//	Minter  tokens that tell a server who calls, kept until shortly before their end
//
// A process that has JWT_PRIVATE_KEY signs tokens by that key in place of one of the
// tables. Where there is no key nothing is signed, and what needed it is refused.
package signing
