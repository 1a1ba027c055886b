package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"gateway/shared/blob"
)

var (
	_ blob.Uploads = (*Bucket)(nil)
	_ blob.Links   = (*Bucket)(nil)
)

// Begin starts a multipart upload. An upload that is neither completed nor abandoned is
// removed by the bucket's life cycle rule.
func (b *Bucket) Begin(ctx context.Context, key, name string) (string, error) {
	full, err := b.check(ctx, key)
	if err != nil {
		return "", err
	}
	out, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &b.name, Key: &full,
		ContentDisposition: aws.String(mime.FormatMediaType("attachment", map[string]string{"filename": name})),
	})
	if err != nil {
		return "", failed(ctx, "begin", key, err)
	}
	return aws.ToString(out.UploadId), nil
}

// Part puts a part; its tag is S3's.
func (b *Bucket) Part(ctx context.Context, key, id string, n int, body []byte) (string, error) {
	full, err := b.check(ctx, key)
	if err != nil {
		return "", err
	}
	out, err := b.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &b.name, Key: &full, UploadId: &id, PartNumber: aws.Int32(int32(n)),
		Body: bytes.NewReader(body), ContentLength: aws.Int64(int64(len(body))),
	})
	if err != nil {
		return "", noUpload(ctx, "part of", key, err)
	}
	return aws.ToString(out.ETag), nil
}

// Complete makes the object.
func (b *Bucket) Complete(ctx context.Context, key, id string, tags []string) error {
	full, err := b.check(ctx, key)
	if err != nil {
		return err
	}
	parts := make([]types.CompletedPart, len(tags))
	for i := range tags {
		parts[i] = types.CompletedPart{ETag: &tags[i], PartNumber: aws.Int32(int32(i + 1))}
	}
	_, err = b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &b.name, Key: &full, UploadId: &id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return noUpload(ctx, "complete", key, err)
	}
	return nil
}

// Abandon returns the upload up, so that its parts cost nothing more.
func (b *Bucket) Abandon(ctx context.Context, key, id string) error {
	full, err := b.check(ctx, key)
	if err != nil {
		return err
	}
	_, err = b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.name, Key: &full, UploadId: &id})
	if err != nil {
		if err = noUpload(ctx, "abandon", key, err); errors.Is(err, blob.ErrNoUpload) {
			return nil
		}
	}
	return err
}

// noUpload is failed, but knows the two refusals that mean that the upload or a part is
// missing.
func noUpload(ctx context.Context, what, key string, err error) error {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) && (coded.ErrorCode() == "NoSuchUpload" || coded.ErrorCode() == "InvalidPart") || status(err) == http.StatusNotFound && !noBucket(err) {
		return fmt.Errorf("%w: %s %s", blob.ErrNoUpload, what, key)
	}
	return failed(ctx, what, key, err)
}

// Link is a presigned address. It stops working when the credentials of the process end, if
// they end first.
func (b *Bucket) Link(ctx context.Context, key string, valid time.Duration) (string, error) {
	full, err := b.check(ctx, key)
	if err != nil {
		return "", err
	}
	out, err := s3.NewPresignClient(b.client).PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &full}, s3.WithPresignExpires(valid))
	if err != nil {
		return "", failed(ctx, "link to", key, err)
	}
	return out.URL, nil
}
