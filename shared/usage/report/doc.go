// Package report answers questions about usage from segments: the list of logs
// and one log, graphs over time, groups and the cache summary.
//
// A question is answered from cubes where the filter and the grouping are among
// a cube's dimensions and a cell lies within one bucket of time, else from the
// columns of the records concerned; both give the same numbers. Unique users
// and latency quantiles are estimates (about 1 per cent off), all else is exact.
package report
