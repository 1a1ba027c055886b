// Package usage is the books of what happened: one Record per request, its
// encoding as an event, the journal that takes it before the last byte goes
// out, the sinks and sources that carry it, and the worker that keeps it.
//
// How records are kept and read stands in two packages below, so that a
// function that only emits events links neither: segment (immutable Parquet
// files with their cubes, ingestion, compaction) and report (logs, graphs,
// groups).
package usage
