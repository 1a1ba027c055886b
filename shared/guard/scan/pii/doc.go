// Package pii finds personal data: email and postal addresses, phone, card, account and
// identity numbers with their check digits, network addresses, and names by rules. It takes one
// pass over the bytes and one over the words, with a limited context for each match.
package pii
