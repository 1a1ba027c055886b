// Package awstest stands in for AWS on loopback: the emulator of DynamoDB and
// strict fakes of SQS, S3 and KMS, as one installation finds them by its
// environment.
package awstest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"gateway/shared/app/onaws"
	"gateway/shared/queue/sqstest"
	"gateway/shared/seal/kmstest"
	"gateway/shared/store/dynamo/dynamotest"
)

// Services are the services of one test.
type Services struct {
	SQS *sqstest.Server
	KMS *kmstest.Server
	Env []string // what leads to them, as name=value; set for this process too
}

// Start starts the services, with a bucket, three queues and a key and without
// tables, and sets the variables that lead to them until the test ends. Where the
// emulator is not installed the test is skipped, or fails when CI is set.
func Start(t *testing.T) *Services {
	t.Helper()
	s := &Services{SQS: sqstest.Start(), KMS: kmstest.Start()}
	t.Cleanup(s.SQS.Close)
	t.Cleanup(s.KMS.Close)
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	bucket := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(bucket.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": likeDynamoDB(t, dynamotest.Start(t)), "AWS_ENDPOINT_URL_SQS": s.SQS.URL(),
		"AWS_ENDPOINT_URL_S3": bucket.URL, "AWS_ENDPOINT_URL_KMS": s.KMS.URL(),
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
		onaws.EnvBucket: "bucket", onaws.EnvKey: s.KMS.CreateKey(),
		onaws.EnvAuditQueue: s.SQS.Create("audit", sqstest.Options{}), onaws.EnvUsageQueue: s.SQS.Create("usage", sqstest.Options{}),
		onaws.EnvRunQueue: s.SQS.Create("batches", sqstest.Options{}),
	} {
		t.Setenv(name, value)
		s.Env = append(s.Env, name+"="+value)
	}
	return s
}

// likeDynamoDB stands before the emulator and takes out of UpdateItem's answers
// what DynamoDB would not say: the keys of an item that was not there.
func likeDynamoDB(t *testing.T, emulator string) string {
	t.Helper()
	to, err := url.Parse(emulator)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(res *http.Response) error {
		if res.StatusCode != 200 || !strings.HasSuffix(res.Request.Header.Get("X-Amz-Target"), ".UpdateItem") {
			return nil
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		var answer struct{ Attributes map[string]json.RawMessage }
		if json.Unmarshal(body, &answer) == nil && len(answer.Attributes) == 2 && answer.Attributes["pk"] != nil && answer.Attributes["sk"] != nil {
			body = []byte("{}")
			res.Header.Del("X-Amz-Crc32")
		}
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		res.Header.Del("Content-Length")
		return nil
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}
