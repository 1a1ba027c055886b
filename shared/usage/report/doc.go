// Package report queries usage in segments: the list of logs, a single log, graphs over
// time, groups and the cache summary.
//
// A query is computed from cubes if the filter and the grouping use only dimensions of
// the cubes and each cell lies within one time bucket, otherwise from the columns of the
// records. Both give the same numbers. Unique users and latency quantiles are estimates
// (error about 1 percent); everything else is exact.
package report
