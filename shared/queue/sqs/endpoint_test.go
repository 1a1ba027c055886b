package sqs

import (
	"crypto/rand"
	"fmt"
	"os"
	"testing"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"gateway/shared/queue"
	"gateway/shared/testkit/queuetest"
)

// TestContractAtEndpoint runs the contract on queues at AWS_ENDPOINT_URL.
func TestContractAtEndpoint(t *testing.T) {
	t.Parallel()
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Skip("AWS_ENDPOINT_URL leads nowhere")
	}
	cfg, err := awsconfig.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := sqs.NewFromConfig(cfg)
	create := func(t *testing.T, attributes map[string]string) string {
		t.Helper()
		out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: ptr("test-" + rand.Text()), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := client.DeleteQueue(bg, &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl}); err != nil {
				t.Error(err)
			}
		})
		return *out.QueueUrl
	}
	queuetest.Run(t, queuetest.Harness{Open: func(t *testing.T, maxAttempts int) queuetest.Opened {
		if maxAttempts == 0 {
			return queuetest.Opened{Queue: New(cfg, create(t, nil))}
		}
		deadURL := create(t, nil)
		out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &deadURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
		if err != nil {
			t.Fatal(err)
		}
		policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, out.Attributes["QueueArn"], maxAttempts)
		dead := New(cfg, deadURL)
		return queuetest.Opened{Queue: New(cfg, create(t, map[string]string{"RedrivePolicy": policy})), Dead: func(t *testing.T) []queue.Message {
			got, err := dead.Receive(bg, 10, 0, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}}
	}})
}

func ptr(s string) *string { return &s }
