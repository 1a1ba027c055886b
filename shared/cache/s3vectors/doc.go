// Package s3vectors keeps the vectors of the semantic cache in an S3 vector
// bucket. There is one index for each number of dimensions, made when its first
// vector comes; tenant and bucket stand in the keys and in the metadata that
// queries filter by. Vectors do not expire by themselves: queries leave out those
// that are over, and Sweep deletes them.
package s3vectors
