// Package upstream holds what the dialects share that only providers speak:
// the client half of such a dialect, a filter that meters its streams, a writer
// of JSON objects, readers of error bodies, and the report of what a wire with
// few members cannot carry.
package upstream
