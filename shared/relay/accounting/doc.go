// Package accounting does the accounting of one request: which limits it counts against (those
// of the key, the workspace and the matching policies), the reservation for a target, the usage
// of its response, its cost, and the settlement. Usage is read from responses and streams; usage
// that a response does not report is estimated. Work that a provider does in the background
// (responses, batches, videos) holds its reservation until a request sees its end.
//
// It also computes the bound of input that is billed but not in the body: content that a
// provider has stored or fetches, and the rows of a batch.
package accounting
