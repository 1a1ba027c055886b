// Package instrumentation reads the spans and log records of other instrumentations as requests to
// models. What an instrumentation calls its attributes, and what it counts, is a row of the
// table in table.go with its source; a new instrumentation is a new row.
package instrumentation
