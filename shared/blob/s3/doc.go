// Package s3 keeps blobs in an S3 bucket, or in a store that speaks its
// protocol.
//
// The role needs s3:GetObject, s3:PutObject, s3:DeleteObject on the objects and
// s3:ListBucket on the bucket; without the last one S3 answers 403 for an absent
// object and ErrNotFound is never seen.
package s3
