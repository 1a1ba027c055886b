// Package token is the check of signed tokens that clients send along: signature, times
// and claims, by keys of the customer or by asking its service of tokens.
package token
