// Package jwt accepts JSON Web Tokens as credentials: signed with RS256 by an issuer whose keys
// an organisation has given, by an address or directly. A token is for one workspace and has
// the scopes that it names, but never those of an organisation key.
//
//	token -> header (strict) -> organisation -> its keys -> signature -> claims -> workspace -> Principal
//
// A valid token is remembered until it expires, as long as the organisation's settings do not
// change. Every rejection says why, and is reported to the audit log once a minute for the same
// token.
package jwt
