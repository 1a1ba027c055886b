package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"gateway/shared/app/onaws"
)

// Names of the resources that are created on an endpoint that lacks them.
const (
	localBucket = "gateway"
	localKey    = "alias/gateway-local"
)

// localQueues are the queues by the variables that name them.
var localQueues = map[string]string{onaws.EnvAuditQueue: "gateway-audit", onaws.EnvUsageQueue: "gateway-usage", onaws.EnvRunQueue: "gateway-batches", onaws.EnvExportQueue: "gateway-exports"}

// prepareEndpoint makes the resources of an installation on the endpoint that
// AWS_ENDPOINT_URL names, and sets the variables that name them. It leaves alone resources
// that variables name already. On AWS itself it makes nothing: there the resources belong
// to the stacks.
func prepareEndpoint(ctx context.Context) error {
	if !elsewhere() {
		return nil
	}
	if os.Getenv("AWS_ACCESS_KEY_ID") == "" && os.Getenv("AWS_PROFILE") == "" {
		setDefault("AWS_ACCESS_KEY_ID", "test")
		setDefault("AWS_SECRET_ACCESS_KEY", "test")
	}
	setDefault("AWS_REGION", "us-east-1")
	cfg, err := onaws.Config(ctx)
	if err != nil {
		return err
	}
	tables, err := onaws.Store(cfg)
	if err != nil {
		return err
	}
	if err := tables.CreateTables(ctx); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if err := errors.Join(makeBucket(ctx, cfg), makeQueues(ctx, cfg), makeKey(ctx, cfg)); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	return nil
}

// elsewhere reports whether the tables are on an endpoint other than AWS.
func elsewhere() bool {
	return os.Getenv("AWS_ENDPOINT_URL") != "" || os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != ""
}

// setDefault sets a variable unless it is set, and reports whether it did.
func setDefault(name, value string) bool {
	if os.Getenv(name) != "" {
		return false
	}
	return os.Setenv(name, value) == nil // a name and a value without NUL cannot fail
}

func makeBucket(ctx context.Context, cfg aws.Config) error {
	if !setDefault(onaws.EnvBucket, localBucket) {
		return nil
	}
	in := &s3.CreateBucketInput{Bucket: aws.String(localBucket)}
	if cfg.Region != "us-east-1" {
		in.CreateBucketConfiguration = &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(cfg.Region)}
	}
	_, err := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }).CreateBucket(ctx, in)
	var ours *s3types.BucketAlreadyOwnedByYou
	var there *s3types.BucketAlreadyExists
	if errors.As(err, &ours) || errors.As(err, &there) {
		return nil
	}
	return err
}

func makeQueues(ctx context.Context, cfg aws.Config) error {
	client := sqs.NewFromConfig(cfg)
	for env, name := range localQueues {
		if os.Getenv(env) != "" {
			continue
		}
		out, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name)})
		if err != nil {
			return fmt.Errorf("queue %s: %w", name, err)
		}
		setDefault(env, aws.ToString(out.QueueUrl))
	}
	return nil
}

func makeKey(ctx context.Context, cfg aws.Config) error {
	if !setDefault(onaws.EnvKey, localKey) {
		return nil
	}
	client := kms.NewFromConfig(cfg)
	_, err := client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: aws.String(localKey)})
	var missing *kmstypes.NotFoundException
	if !errors.As(err, &missing) {
		return err
	}
	key, err := client.CreateKey(ctx, &kms.CreateKeyInput{Description: aws.String("Wraps the data keys of a gateway on a laptop")})
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	_, err = client.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: aws.String(localKey), TargetKeyId: key.KeyMetadata.KeyId})
	return err
}
