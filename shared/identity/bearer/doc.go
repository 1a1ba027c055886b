// Package bearer checks tokens of customers' own identity providers, which clients send
// along besides their key: signature, times and claims, by keys of the customer or by
// asking its service of tokens (RFC 7662). What a refused token means is the caller's.
package bearer
