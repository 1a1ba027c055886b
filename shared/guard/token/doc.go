// Package token is the check of signed tokens that clients send along: signature, times and
// claims. It uses keys of the customer, or asks the customer's token service.
package token
