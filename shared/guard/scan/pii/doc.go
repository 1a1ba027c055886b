// Package pii finds what tells about a person: addresses of mail and of houses,
// numbers of phones, cards, accounts and identity papers with their check digits,
// addresses of the network, and names by rules. It takes one pass over the bytes and
// one over the words; what it looks at around a find is bounded.
package pii
