// Package identity authenticates callers: API keys with their types, scopes, states and
// rotation, and the Principal of a valid key. It also contains the roles of users and the
// scopes that they may grant.
//
// A raw key is shown once and never stored: rows are found by its SHA-256.
package identity
