// Package pii finds personal data: mail and postal addresses, numbers of phones, cards,
// accounts and identity papers with their check digits, network addresses, and names by rules.
// It takes one pass over the bytes and one over the words; how much it looks at around a find
// is limited.
package pii
