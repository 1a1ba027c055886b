// Package s3vectors keeps the vectors of the semantic cache in an S3 vector bucket. There
// is one index for each number of dimensions, made when its first vector comes. Tenant and
// bucket are part of the keys and of the metadata that queries filter by. Vectors do not
// expire by themselves: queries leave out expired ones, and Sweep deletes them.
package s3vectors
