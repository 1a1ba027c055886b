// Package export writes the logs that a filter selects to a file.
//
// An export is a run of steps. A step holds the run by a lease, reads pages of logs after
// the run's cursor, and uploads them as parts of one multipart upload; after each part it
// saves cursor, parts and counts. A killed process loses only its current part. Memory is
// limited to one part and one page, regardless of the number of logs.
//
//	Runs     state of each run: start, cancel, get         (administration)
//	Worker   performs the steps that messages request      (worker)
//	lines    one log as a line: JSON or CSV
//	columns  Parquet
//
// The end of a Parquet file contains the offsets of all its columns. The metadata of a
// part, its index, is a separate object beside the part until the file is complete.
package export
