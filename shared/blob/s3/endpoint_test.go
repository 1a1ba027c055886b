package s3

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"gateway/shared/blob"
	"gateway/shared/testkit/blobtest"
)

// TestContractAtEndpoint runs the contract on buckets at AWS_ENDPOINT_URL.
func TestContractAtEndpoint(t *testing.T) {
	t.Parallel()
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Skip("AWS_ENDPOINT_URL leads nowhere")
	}
	cfg, err := awsconfig.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	blobtest.Run(t, func(t *testing.T) blob.Bucket {
		name := "test-" + strings.ToLower(rand.Text())
		in := &s3.CreateBucketInput{Bucket: &name}
		if cfg.Region != "us-east-1" {
			in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(cfg.Region)}
		}
		if _, err := client.CreateBucket(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { empty(t, client, name) })
		return New(cfg, name, PathStyle())
	})
}

// empty deletes a bucket with all that is in it.
func empty(t *testing.T, client *s3.Client, name string) {
	t.Helper()
	ctx := context.Background()
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		for _, o := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &name, Key: o.Key}); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String(name)}); err != nil {
		t.Error(err)
	}
}
