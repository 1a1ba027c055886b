// Package athena runs queries that are too large for one process on Amazon Athena: it
// starts a query in a workgroup, waits for it and reads its rows. The package report
// writes the queries, the package segment the files; functions/docs/guides/athena.md
// explains how to query them.
//
// The role needs athena:StartQueryExecution, GetQueryExecution and GetQueryResults on the
// workgroup; glue:GetDatabase, GetTable and GetPartitions on the table, its database and
// the catalog; and in S3 access to the files, the results and the location of the bucket.
package athena
