// Package cache stores responses of providers so that an equal or semantically equivalent
// request does not call the provider again.
//
// The exact cache finds a response by a SHA-256 over everything that determines it:
// tenant, operation, provider, address, the body as it would be sent without its
// streaming fields, and metadata or a namespace. The tenant is also in the key of the
// row, so a response of another workspace cannot be addressed. Responses are customer
// content and are always sealed with the data key of their organization.
//
// The semantic cache is consulted when the exact one has no entry: an Embedder computes a
// vector of the user's text, which is compared with the vectors of earlier requests that
// are equal otherwise. It finds keys of the exact cache.
//
// There is no copy in the process. If another process replaces a response, the next read
// of the store returns it, on DynamoDB perhaps a second late. Rows expire automatically.
// Responses too large for a row are stored below "cache/" in the bucket; Sweep, or a
// lifecycle rule of more than MaxAge, removes those that no row refers to.
package cache
