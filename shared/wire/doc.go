// Package wire reads and writes the bytes that cross the gateway's edge: JSON
// bodies, server-sent events and the small header formats around them.
//
// The hot path never decodes a whole body. KeySet.Walk checks the structure of a JSON
// object once, finds the few top-level values that routing needs and rejects what two
// parsers could read differently. Splice then edits those values in place and leaves
// every other byte unchanged. Decoder is the pull reader that translations use. All of
// them are safe for hostile input: bounded depth, no recursion on data, no panic.
//
// What must never come in: the meaning of a body (which model, which message
// shape). That belongs to the dialects.
package wire
