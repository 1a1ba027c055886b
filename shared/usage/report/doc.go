// Package report answers questions about usage from segments: the list of logs, a single
// log, graphs over time, groups and the cache summary.
//
// A question is answered from cubes if the filter and the grouping use only dimensions of
// the cubes and a cell lies within one bucket of time. Otherwise it is answered from the
// columns of the records. Both ways give the same numbers. Unique users and latency
// quantiles are estimates (about 1 per cent off); everything else is exact.
package report
