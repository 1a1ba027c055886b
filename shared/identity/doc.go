// Package identity knows who calls: API keys with their types, scopes, states
// and rotation, and the Principal that a valid key stands for. Roles of users
// and the scopes they may grant live here too.
//
// A raw key is shown once and never stored: rows are found by its SHA-256.
package identity
