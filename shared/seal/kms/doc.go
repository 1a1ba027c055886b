// Package kms wraps data keys with a key of AWS KMS, symmetric, in the key's own
// Region.
//
// The encryption context is {org, purpose}. purpose is the table of the value, so that
// kms:EncryptionContext:purpose can limit a role's use of the key. Sealing needs
// kms:GenerateDataKey, opening kms:Decrypt.
package kms
