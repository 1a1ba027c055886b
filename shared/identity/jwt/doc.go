// Package jwt accepts JSON Web Tokens as credentials: signed with RS256 by an issuer
// whose keys an organisation has named, by an address or in place. A token stands
// for one workspace and holds the scopes that it names, never those of an
// organisation key.
//
//	token -> header (strict) -> organisation -> its keys -> signature -> claims -> workspace -> Principal
//
// A token that was found good is remembered until it expires, as long as the
// organisation's settings stay what they were. Every refusal says why, and is told
// to the audit log once a minute for the same token.
package jwt
