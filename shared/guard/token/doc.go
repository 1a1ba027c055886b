// Package token implements the check of signed tokens that clients send: signature, times and
// claims. It uses keys of the customer or the customer's introspection endpoint.
package token
