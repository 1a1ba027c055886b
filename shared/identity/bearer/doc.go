// Package bearer checks tokens of customers' own identity providers, which clients send along
// besides their key: signature, times and claims. It uses keys of the customer, or asks the
// customer's token service (RFC 7662). The caller decides what a rejected token means.
package bearer
