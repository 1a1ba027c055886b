// Package s3 stores blobs in an S3 bucket, or in a store with the same protocol.
//
// The role needs s3:GetObject, s3:PutObject, s3:DeleteObject on the objects and
// s3:ListBucket on the bucket; without the last one S3 responds with 403 for an absent
// object and ErrNotFound is never returned.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"gateway/shared/blob"
	"gateway/shared/fault"
)

// Bucket is a blob.Bucket in S3. If the service does not answer or rejects, the error is
// a 503 fault (service_unavailable) with the cause for the log.
type Bucket struct {
	client *s3.Client
	name   string
	prefix string
}

var _ blob.Bucket = (*Bucket)(nil)

type settings struct {
	prefix    string
	endpoint  string
	pathStyle bool
}

// Option changes how a Bucket is reached.
type Option func(*settings)

// Prefix stores all objects below prefix, such as "data"; keys do not contain it.
func Prefix(prefix string) Option {
	return func(s *settings) { s.prefix = strings.Trim(prefix, "/") }
}

// Endpoint sends calls to a URL instead of the Region's S3.
func Endpoint(url string) Option { return func(s *settings) { s.endpoint = url } }

// PathStyle puts the bucket into the path instead of the host name, which stores
// without wildcard DNS need.
func PathStyle() Option { return func(s *settings) { s.pathStyle = true } }

// New uses the bucket name with cfg's Region and credentials. It makes no call.
// cfg without an HTTP client gets the SDK's own, which honors AWS_CA_BUNDLE.
func New(cfg aws.Config, name string, options ...Option) *Bucket {
	var set settings
	for _, o := range options {
		o(&set)
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	b := &Bucket{name: name}
	if set.prefix != "" {
		b.prefix = set.prefix + "/"
	}
	b.client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = set.pathStyle
		if set.endpoint != "" {
			o.BaseEndpoint = aws.String(set.endpoint)
		}
	})
	return b
}

// check is what every call does first; it makes key the object's full key.
func (b *Bucket) check(ctx context.Context, key string) (string, error) {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return "", err
	}
	full := b.prefix + key
	if len(full) > blob.MaxKey {
		return "", fmt.Errorf("blob/s3: key of %d bytes with its prefix, at most %d are allowed", len(full), blob.MaxKey)
	}
	return full, nil
}

// failed turns an SDK error into one of the package's.
func failed(ctx context.Context, what, key string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("blob/s3: %s %s: %w", what, key, cause)
	}
	switch status(err) {
	case http.StatusNotFound:
		if !noBucket(err) {
			return fmt.Errorf("%w: %s", blob.ErrNotFound, key)
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return fmt.Errorf("%w: %s", blob.ErrRange, key)
	}
	return fault.Unavailable(fmt.Errorf("blob/s3: %s %s: %w", what, key, err))
}

func status(err error) int {
	var re *awshttp.ResponseError
	if errors.As(err, &re) {
		return re.HTTPStatusCode()
	}
	return 0
}

// noBucket reports whether the bucket is missing, an error of the installation, rather
// than the object.
func noBucket(err error) bool {
	var coded interface{ ErrorCode() string }
	return errors.As(err, &coded) && coded.ErrorCode() == "NoSuchBucket"
}

// Put writes an object atomically.
func (b *Bucket) Put(ctx context.Context, key string, body []byte) error {
	full, err := b.check(ctx, key)
	if err != nil {
		return err
	}
	_, err = b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.name, Key: &full,
		Body:          bytes.NewReader(body),
		ContentLength: aws.Int64(int64(len(body))),
	})
	if err != nil {
		return failed(ctx, "put", key, err)
	}
	return nil
}

// Get reads an object of at most max bytes (0 means no limit).
func (b *Bucket) Get(ctx context.Context, key string, max int64) ([]byte, error) {
	full, err := b.check(ctx, key)
	if err != nil {
		return nil, err
	}
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &full})
	if err != nil {
		return nil, failed(ctx, "get", key, err)
	}
	defer out.Body.Close()
	if out.ContentLength == nil {
		return nil, failed(ctx, "get", key, errors.New("the answer has no length"))
	}
	size := *out.ContentLength
	if max > 0 && size > max {
		return nil, fmt.Errorf("%w: %s has %d bytes, %d allowed", blob.ErrTooLarge, key, size, max)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(out.Body, body); err != nil {
		return nil, failed(ctx, "get", key, err)
	}
	return body, nil
}

// Open streams length bytes from offset (length < 0 means to the end) and returns the
// size of the object. The context must live as long as the reader.
func (b *Bucket) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	full, err := b.check(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	if offset < 0 {
		return nil, 0, fmt.Errorf("%w: %s, offset is %d", blob.ErrRange, key, offset)
	}
	if length == 0 { // S3 has no empty range
		return b.openNothing(ctx, key, full, offset)
	}
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &full}
	switch {
	case length > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := b.client.GetObject(ctx, in)
	if err != nil {
		return nil, 0, failed(ctx, "open", key, err)
	}
	size := aws.ToInt64(out.ContentLength)
	if in.Range != nil {
		size, err = wholeSize(aws.ToString(out.ContentRange))
		if err != nil {
			out.Body.Close()
			return nil, 0, failed(ctx, "open", key, err)
		}
	}
	return out.Body, size, nil
}

func (b *Bucket) openNothing(ctx context.Context, key, full string, offset int64) (io.ReadCloser, int64, error) {
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &full})
	if err != nil {
		return nil, 0, failed(ctx, "open", key, err)
	}
	size := aws.ToInt64(out.ContentLength)
	if offset > size {
		return nil, size, fmt.Errorf("%w: %s has %d bytes, offset is %d", blob.ErrRange, key, size, offset)
	}
	return http.NoBody, size, nil
}

// wholeSize reads the object's size from "bytes 0-9/1000".
func wholeSize(contentRange string) (int64, error) {
	_, total, _ := strings.Cut(contentRange, "/")
	n, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("content range %q has no size", contentRange)
	}
	return n, nil
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	full, err := b.check(ctx, key)
	if err != nil {
		return err
	}
	_, err = b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &full})
	if err != nil {
		if err = failed(ctx, "delete", key, err); errors.Is(err, blob.ErrNotFound) {
			return nil
		}
	}
	return err
}

// List returns at most limit keys with the prefix that sort after the key after, in byte
// order.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	var keys []string
	for len(keys) < limit {
		in := &s3.ListObjectsV2Input{
			Bucket: &b.name, Prefix: aws.String(b.prefix + prefix),
			MaxKeys: aws.Int32(int32(min(limit-len(keys), 1000))),
		}
		if after != "" {
			in.StartAfter = aws.String(b.prefix + after)
		}
		out, err := b.client.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, failed(ctx, "list", prefix, err)
		}
		for _, o := range out.Contents {
			after = strings.TrimPrefix(aws.ToString(o.Key), b.prefix)
			keys = append(keys, after)
		}
		if !aws.ToBool(out.IsTruncated) || len(out.Contents) == 0 {
			break
		}
	}
	return keys, nil
}

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

// Abort aborts the upload, so that its parts cost nothing more.
func (b *Bucket) Abort(ctx context.Context, key, id string) error {
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

// noUpload is failed, but knows the two rejections that mean that the upload or a part is
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
