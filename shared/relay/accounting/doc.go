// Package accounting is the money of one request: which limits it counts against (those of the
// key, the workspace and the policies that match it), what is reserved for a target, what its
// response used, what that costs, and the settlement. Usage is read from responses and streams;
// what a response does not report is estimated. Work that a provider does in its own time
// (background responses, batches, videos) holds its reservation until a request sees its end.
package accounting
