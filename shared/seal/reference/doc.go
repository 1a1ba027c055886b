// Package reference reads secrets from external managers: AWS Secrets Manager, Azure Key Vault
// and HashiCorp Vault. A Reference states where a secret is and how its manager is called. A
// Resolver calls the manager when a request needs the value, and caches it for a short time.
//
// The manager's response determines what a failure means. An error response (no such secret, no
// permission to read it) ends the use of a cached value immediately. If the manager cannot be
// reached, the cached value may be used until MaxStale.
//
// Do not add the purpose of a secret, or which identity the gateway lends (see Identities).
package reference
