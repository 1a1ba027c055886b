package awsemulator

import (
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"gateway/shared/store/dynamo/emulator"
)

// One address is enough for all services: each is called what only it can answer,
// about what the templates describe.
func TestOneAddress(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), "../../..")
	if errors.Is(err, emulator.ErrMissing) && os.Getenv("CI") == "" {
		t.Skipf("NOT TESTED ON AWS: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	one, err := s.One()
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(one)
	t.Cleanup(front.Close)
	cfg := aws.Config{
		Region: Region, BaseEndpoint: &front.URL, HTTPClient: awshttp.NewBuildableClient(), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "secret", ""),
	}
	ctx := t.Context()
	tables, err := dynamodb.NewFromConfig(cfg).ListTables(ctx, &dynamodb.ListTablesInput{})
	if err != nil || len(tables.TableNames) != len(Described().Tables) {
		t.Errorf("tables: %v, %v", tables, err)
	}
	for name, q := range Described().Queues {
		url, err := sqs.NewFromConfig(cfg).GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := sqs.NewFromConfig(cfg).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: url.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if policy := got.Attributes["RedrivePolicy"]; (policy != "") != (q.MaxReceives > 0) || !strings.Contains(policy, q.DeadLetter) {
			t.Errorf("%s: %s", name, policy)
		}
	}
	if _, err := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }).HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String(bucketName)}); err != nil {
		t.Error(err)
	}
	if _, err := kms.NewFromConfig(cfg).DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &s.key}); err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	one.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 404 || w.Header().Get(EmulatorHeader) == "" {
		t.Errorf("unsigned: %d %v", w.Code, w.Header())
	}
}
