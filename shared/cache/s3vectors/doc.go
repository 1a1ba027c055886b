// Package s3vectors stores the vectors of the semantic cache in an S3 vector bucket.
// There is one index for each number of dimensions, created with its first vector. Tenant
// and bucket are part of the keys and of the metadata that queries filter by. Vectors do
// not expire automatically: queries omit expired ones, and Sweep deletes them.
package s3vectors
