// Package s3 stores blobs in an S3 bucket, or in a store with the same protocol.
//
// The role needs s3:GetObject, s3:PutObject, s3:DeleteObject on the objects and
// s3:ListBucket on the bucket; without the last one S3 responds with 403 for an absent
// object and ErrNotFound is never returned.
package s3
