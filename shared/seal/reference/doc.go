// Package reference reads secrets that stay where they are: in AWS Secrets Manager, in
// Azure Key Vault, in HashiCorp Vault. A Reference says where a secret is and how its
// manager is called. A Resolver calls the manager when a request needs the value, and
// remembers it for a short time.
//
// The manager's answer decides what a failure means. A refusal (no such secret, no
// permission to read it) ends the use of a remembered value at once. If the manager cannot
// be reached, the value may be used on, for as long as MaxStale.
//
// What must never come in: what a secret is for, and whose identity the gateway lends (see
// Identities).
package reference
