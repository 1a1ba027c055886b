package onaws

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"gateway/shared/cache"
	"gateway/shared/cache/dynamovectors"
	"gateway/shared/cache/s3vectors"
	"gateway/shared/pricing/running"
)

// advice maps error codes of AWS to remedies. %s is the call, such as "DynamoDB GetItem".
var advice = []struct {
	codes []string
	text  string
}{
	{[]string{"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"},
		"the AWS credentials have expired: sign in again (aws sso login), or set new ones with their AWS_SESSION_TOKEN"},
	{[]string{"UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSignatureException", "IncompleteSignature", "MissingAuthenticationToken", "MissingAuthenticationTokenException"},
		"AWS does not know these credentials: check AWS_PROFILE, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, which belong together"},
	{[]string{"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"},
		"the clock of this machine is wrong: set it"},
	{[]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "AuthorizationErrorException", "NotAuthorized"},
		"the credentials have no permission for %s: deploy the stacks again to restore the role of a function, or grant the permission to the user who runs this"},
	{[]string{"OptInRequired", "SubscriptionRequiredException"},
		"the account cannot use %s here: enable the region or the service in the account"},
	{[]string{"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"},
		"the queue of %s does not exist: check GATEWAY_USAGE_QUEUE_URL, GATEWAY_AUDIT_QUEUE_URL, GATEWAY_BATCH_QUEUE_URL, GATEWAY_EXPORT_QUEUE_URL and AWS_REGION, or deploy the stacks"},
	{[]string{"NoSuchBucket"},
		"the bucket of %s does not exist: check GATEWAY_BUCKET and AWS_REGION, or deploy the stacks"},
	{[]string{"NotFoundException"}, // of KMS
		"what %s names does not exist: check GATEWAY_KMS_KEY_ID and AWS_REGION, or deploy the stacks"},
	{[]string{"ResourceNotFoundException"},
		"what %s names does not exist: check GATEWAY_TABLE_PREFIX and AWS_REGION, or deploy the stacks"},
	{[]string{"DisabledException", "KMSInvalidStateException"},
		"the key of %s is disabled or about to be deleted: enable it, or cancel its deletion; without it no credential can be read"},
	{[]string{"BucketAlreadyExists"},
		"the bucket belongs to another account: set GATEWAY_BUCKET to another name"},
	{[]string{"LimitExceededException"},
		"the account has reached its quota for %s: delete unused resources, or request an increase in Service Quotas"},
}

// Advise puts advice in front of an error of AWS that it knows; other errors stay as they
// are.
func Advise(err error) error {
	if err == nil {
		return nil
	}
	if text := advised(err); text != "" {
		return fmt.Errorf("%s (%w)", text, err)
	}
	return err
}

func advised(err error) string {
	call := "this call"
	var op *smithy.OperationError
	if errors.As(err, &op) {
		call = op.Service() + " " + op.Operation()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		for _, a := range advice {
			for _, code := range a.codes {
				if api.ErrorCode() == code {
					return strings.ReplaceAll(a.text, "%s", call)
				}
			}
		}
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound && strings.HasSuffix(strings.TrimSuffix(dns.Name, "."), ".amazonaws.com"):
		return fmt.Sprintf("there is no host %s: is AWS_REGION=%s a region of AWS?", dns.Name, os.Getenv("AWS_REGION"))
	case strings.Contains(err.Error(), "failed to refresh cached credentials"), strings.Contains(err.Error(), "no EC2 IMDS role found"):
		return "there are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in (aws sso login)"
	case strings.Contains(err.Error(), "failed to get shared config profile"):
		return "the profile in AWS_PROFILE does not exist: aws configure list-profiles names those that do"
	}
	return ""
}

// idleConnections is how many connections to one service wait for use. One
// process has few requests under way.
const idleConnections = 64

// Loader makes AWS's configuration; the client is that of its calls.
type Loader func(context.Context, *awshttp.BuildableClient) (aws.Config, error)

// load is the Loader of this process.
var load Loader = fromEnvironment

// Use sets how this process finds its credentials and its Region, before it loads any. Without
// it both come from the environment, as in every function.
func Use(l Loader) { load = l }

// Config is AWS's configuration with one HTTP client for all services, which
// honors AWS_CA_BUNDLE.
func Config(ctx context.Context) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = idleConnections
		t.IdleConnTimeout = 50 * time.Second
	})
	cfg, err := load(ctx, client)
	if err != nil {
		return cfg, Advise(fmt.Errorf("onaws: %w", err))
	}
	if cfg.Region == "" {
		return cfg, errors.New("onaws: AWS_REGION must be set to the region of the installation, such as eu-west-1")
	}
	if cfg.HTTPClient != nil {
		cfg.HTTPClient = counted{cfg.HTTPClient}
	}
	return cfg, nil
}

// counted counts the calls of AWS, to compute their cost; see running.
type counted struct{ aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c counted) Do(r *http.Request) (*http.Response, error) {
	sent := r.ContentLength
	answer, err := c.HTTPClient.Do(r)
	received := int64(0)
	if err == nil {
		received = answer.ContentLength
	}
	service, action := called(r)
	running.Process.Count(service, action, sent, received)
	return answer, err
}

// called names the service and the action of a call.
func called(r *http.Request) (service, action string) {
	target, action, named := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch {
	case !named && r.Header.Get("X-Amz-Content-Sha256") != "":
		return "S3", r.Method
	case strings.HasPrefix(target, "DynamoDB"):
		return "DynamoDB", action
	case target == "AmazonSQS":
		return "SQS", action
	case target == "TrentService":
		return "KMS", action
	}
	return "", ""
}

// Variables that specify where the vectors of the semantic cache are: in an S3 vector bucket,
// or in a DynamoDB table with vector indexes. Without either they are in the other tables,
// which suits thousands of questions a workspace, not millions.
const (
	EnvVectorBucket     = "GATEWAY_VECTOR_BUCKET"
	EnvVectorTable      = "GATEWAY_VECTOR_TABLE"      // the table's ARN
	EnvVectorDimensions = "GATEWAY_VECTOR_DIMENSIONS" // of its indexes; comma list
)

// Vectors is the index of the semantic cache; nil if no variable names one.
func Vectors(ctx context.Context) (cache.VectorIndex, error) {
	bucket, table := os.Getenv(EnvVectorBucket), os.Getenv(EnvVectorTable)
	if bucket == "" && table == "" {
		return nil, nil
	}
	if bucket != "" && table != "" {
		return nil, fmt.Errorf("onaws: %s and %s are both set: vectors are stored in only one of them", EnvVectorBucket, EnvVectorTable)
	}
	dimensions, err := vectorDimensions()
	if err != nil {
		return nil, err
	}
	if table != "" && len(dimensions) == 0 {
		return nil, fmt.Errorf("onaws: %s needs %s: the numbers of dimensions of its indexes", EnvVectorTable, EnvVectorDimensions)
	}
	cfg, err := Config(ctx)
	if err != nil {
		return nil, err
	}
	if table != "" {
		return dynamovectors.New(cfg, table, dimensions, nil), nil
	}
	return s3vectors.New(cfg, bucket, nil), nil
}

func vectorDimensions() (out []int, err error) {
	for _, text := range list(EnvVectorDimensions) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > cache.MaxDimensions {
			return nil, fmt.Errorf("onaws: %s: %q must be a number from 1 to %d", EnvVectorDimensions, text, cache.MaxDimensions)
		}
		out = append(out, n)
	}
	return out, nil
}

// SweepVectors deletes the vectors of expired responses from an S3 vector bucket. Rows of
// tables expire automatically.
func SweepVectors(ctx context.Context) error {
	v, err := Vectors(ctx)
	if err != nil {
		return err
	}
	if index, ok := v.(*s3vectors.Index); ok {
		return index.Sweep(ctx)
	}
	return nil
}
