// Package response forwards a stream from a provider to its client: unchanged if both use the
// same dialect, otherwise translated event by event. It assembles streams where the complete
// response is needed.
//
// It reads usage from the end of passed-through responses, where providers report it, reads
// truncated responses, and estimates usage that was not reported.
//
// It detects prompts with a marked prefix that is repeatedly written to a provider's
// cache and never read: the prefix changes with each request, or requests are too infrequent.
// Writing to the cache costs more than not marking the prefix.
//
// A Recorder buffers the responses to requests that the gateway makes itself, on behalf of
// a caller.
package response
