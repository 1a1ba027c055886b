// Package upstream holds what the dialects share that only providers speak: what
// meters their answers where these are passed on, a filter for streams, a writer
// of JSON objects, readers of error bodies, and the report of what a wire with
// few members cannot carry.
package upstream
