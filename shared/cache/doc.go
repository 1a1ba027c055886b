// Package cache keeps answers of providers so that an equal request, or one that
// means the same, is answered without calling the provider again.
//
// The exact cache finds an answer by a SHA-256 over everything that decides what
// the provider would say: tenant, operation, provider, address, the body as it
// would be sent without its streaming members, and metadata or a namespace. The
// tenant also stands in the key of the row, so an answer of another workspace
// cannot be named. Answers are customer content and are sealed with the data key
// of their organisation wherever they are kept.
//
// The semantic cache is asked when the exact one has nothing: an Embedder makes the user's
// words into a vector, which is compared with the vectors of earlier requests that are
// equal in everything else. It finds keys of the exact cache.
//
// There is no copy in the process. If another process replaces an answer, the next read of
// the store sees it, which on DynamoDB may be about a second late. Rows expire by
// themselves. Answers that are too large for a row are kept below "cache/" in the bucket;
// Sweep, or a lifecycle rule of more than MaxAge, removes those that no row refers to.
package cache
