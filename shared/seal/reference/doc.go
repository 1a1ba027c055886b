// Package reference is about secrets that stay where they are: in AWS Secrets
// Manager, in Azure Key Vault, in HashiCorp Vault. A Reference says where one is
// and how its manager is asked; a Resolver asks when a request needs the value,
// and remembers it for a short time.
//
// What a manager says decides what a failure means. A refusal (no such secret, no
// right to read it) ends the use of a remembered value at once; a manager that
// cannot be reached does not, for as long as MaxStale.
//
// What must never come in: what a secret is for, and whose identity the gateway
// lends (see Identities).
package reference
