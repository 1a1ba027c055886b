// Package athena asks Amazon Athena what outgrows one process: it starts a query in a
// workgroup, waits for it and reads its rows. The queries are report's, the files are
// segment's; README.md tells how people query them.
//
// The role needs athena:StartQueryExecution, GetQueryExecution and GetQueryResults on
// the workgroup, glue:GetDatabase, GetTable and GetPartitions on what the table is in,
// and in S3 the files, the results and the location of the bucket.
package athena
