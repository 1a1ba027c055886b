// Package kmstest is a strict KMS for tests: GenerateDataKey and Decrypt of
// symmetric keys in the JSON protocol over HTTP, with encryption contexts that
// are authenticated, the errors that AWS documents, and faults on request.
package kmstest
