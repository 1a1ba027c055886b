// Package recorder buffers the responses to requests that the gateway makes itself, on behalf of
// a caller.
package recorder
