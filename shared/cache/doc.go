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
// The semantic cache comes behind it: the user's words are made into a vector by
// an Embedder and compared with those of earlier requests that are equal in all
// else. What it finds are keys of the exact cache.
//
// There is no copy in the process: an answer that another process has replaced is
// seen by the next read of the store, which on DynamoDB may lag for about a
// second. Rows expire by themselves; answers that are too large for a row stand
// below "cache/" in the bucket, where Sweep, or a lifecycle rule of more than
// MaxAge, removes what no row refers to.
package cache
