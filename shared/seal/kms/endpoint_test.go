package kms

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"gateway/shared/seal"
	"gateway/shared/testkit/sealtest"
)

// TestContractAtEndpoint runs the contract on keys at AWS_ENDPOINT_URL.
func TestContractAtEndpoint(t *testing.T) {
	t.Parallel()
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Skip("AWS_ENDPOINT_URL leads nowhere")
	}
	cfg, err := awsconfig.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := kms.NewFromConfig(cfg)
	create := func() string {
		out, err := client.CreateKey(t.Context(), &kms.CreateKeyInput{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := client.ScheduleKeyDeletion(bg, &kms.ScheduleKeyDeletionInput{KeyId: out.KeyMetadata.Arn, PendingWindowInDays: aws.Int32(7)}); err != nil {
				t.Error(err)
			}
		})
		return *out.KeyMetadata.Arn
	}
	key, other := create(), create()
	sealtest.Run(t, sealtest.Harness{
		Open:    func(*testing.T) seal.Wrapper { return New(cfg, Options{Key: key}) },
		Foreign: func(*testing.T) seal.Wrapper { return New(cfg, Options{Key: other}) },
	})
}
