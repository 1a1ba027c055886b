// Package bearer verifies tokens of customers' identity providers, which clients send in
// addition to their key: signature, times and claims. It uses keys of the customer or the
// customer's introspection endpoint (RFC 7662). The caller decides the consequence of a
// rejected token.
package bearer
