// Package jwt accepts JSON Web Tokens as credentials: signed with RS256 by an issuer whose keys
// an organization configured, at an address or inline. A token is for one workspace and has the
// scopes that it names, but never those of an organization key.
//
//	token -> header (strict) -> organization -> its keys -> signature -> claims -> workspace -> Principal
//
// A valid token is cached until it expires, as long as the organization's settings do not
// change. Every rejection states the reason, and is reported to the audit log at most once a
// minute per token.
package jwt
