// Package reused is the response cache of one request: which requests match, exactly or
// semantically, which responses are stored, and the cache status.
package reused
