// Package upstream holds what the dialects that only providers speak have in common:
// meters for responses that are forwarded, a filter for streams, a writer of JSON objects,
// readers of error bodies, and the report of what a wire with few fields cannot carry.
package upstream
