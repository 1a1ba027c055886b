// Package usage is the accounting of requests: one Record per request, its encoding as an
// event, the journal that stores it before the last response byte is sent, the sinks and
// sources that transport it, and the worker that ingests it.
//
// Two subpackages store and read records, so that a function that only emits events links
// neither: segment (immutable Parquet files with their cubes, ingestion, compaction) and
// report (logs, graphs, groups).
package usage
