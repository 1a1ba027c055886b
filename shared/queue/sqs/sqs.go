// Package sqs is a queue on SQS, standard queues, JSON protocol.
//
// A dead-letter queue is an ordinary queue. The installation sets it by a redrive policy; here
// it is opened by its URL like any other. Times are in seconds, rounded up. Bodies that are not
// text are base64 with a mark (see queue.EncodeBody). A Lambda function that gets messages from
// an event source decodes them with queue.DecodeBody.
//
// The role needs sqs:SendMessage, sqs:ReceiveMessage, sqs:DeleteMessage and
// sqs:ChangeMessageVisibility on the queue.
package sqs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"gateway/shared/fault"
	"gateway/shared/queue"
)

// Queue is one SQS queue. If the service does not answer or rejects, the error is a 503
// fault (service_unavailable) with the cause for the log.
type Queue struct {
	client *sqs.Client
	url    string
}

var _ queue.Queue = (*Queue)(nil)

// Option changes how a Queue is reached.
type Option func(*sqs.Options)

// Endpoint sends calls to a URL instead of the Region's SQS.
func Endpoint(url string) Option {
	return func(o *sqs.Options) { o.BaseEndpoint = aws.String(url) }
}

// New uses the queue at url with cfg's Region and credentials. It makes no call.
// cfg without an HTTP client gets the SDK's own, which honors AWS_CA_BUNDLE.
func New(cfg aws.Config, url string, options ...Option) *Queue {
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	client := sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		for _, option := range options {
			option(o)
		}
	})
	return &Queue{client: client, url: url}
}

const (
	batchEntries = 10
	batchBytes   = 1 << 20
	// entryTries is how often an entry is sent that failed by SQS's fault; the SDK retries
	// complete requests.
	entryTries = 4
)

// failed turns an SDK error into one of the package's.
func failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("queue/sqs: %s: %w", what, cause)
	}
	return fault.Unavailable(fmt.Errorf("queue/sqs: %s: %w", what, err))
}

// outcome is the rest of a batch: entries worth another try and entries that will never be
// accepted, by their position in the batch.
type outcome struct {
	retry    []int
	rejected []int
	cause    error // of the first one
}

// settle reads the response to a batch of n entries with their positions as ids.
func settle(n int, accepted []*string, bad []types.BatchResultErrorEntry) outcome {
	var o outcome
	settled := make([]bool, n)
	for _, id := range accepted {
		if i, ok := position(id, n); ok {
			settled[i] = true
		}
	}
	for _, e := range bad {
		i, ok := position(e.Id, n)
		if !ok {
			continue
		}
		if o.cause == nil { // only the code, because messages may quote a body
			o.cause = fmt.Errorf("entry failed with %s", aws.ToString(e.Code))
		}
		if e.SenderFault {
			settled[i] = true
			o.rejected = append(o.rejected, i)
		}
	}
	for i, done := range settled {
		if !done {
			o.retry = append(o.retry, i)
		}
	}
	if len(o.retry) > 0 && o.cause == nil {
		o.cause = errors.New("entries are missing in the response")
	}
	return o
}

func position(id *string, n int) (int, bool) {
	i, err := strconv.Atoi(aws.ToString(id))
	return i, err == nil && i >= 0 && i < n
}

// pause waits before the try-th repetition; false when the context ended.
func pause(ctx context.Context, try int) bool {
	d := 50 * time.Millisecond << try
	timer := time.NewTimer(d/2 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// seconds rounds up to seconds within [low, high].
func seconds(d, low, high time.Duration) int32 {
	d = min(max(d, low), high)
	return int32((d + time.Second - 1) / time.Second)
}

// Receive waits up to wait (rounded up to seconds) for up to n messages. n is limited to 1
// to 10, wait to 0 to 20 s, visibility to 1 s to 12 h.
func (q *Queue) Receive(ctx context.Context, n int, wait, visibility time.Duration) ([]queue.Message, error) {
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:            &q.url,
		MaxNumberOfMessages: int32(min(max(n, 1), queue.MaxReceive)),
		WaitTimeSeconds:     seconds(wait, 0, queue.MaxWait),
		VisibilityTimeout:   seconds(visibility, time.Second, queue.MaxVisibility),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount,
			types.MessageSystemAttributeNameMessageGroupId,
		},
	})
	if err != nil {
		return nil, failed(ctx, "receive", err)
	}
	var got []queue.Message
	for i := range out.Messages {
		m := &out.Messages[i]
		attempt, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
		if err != nil {
			attempt = 1
		}
		got = append(got, queue.Message{
			ID:      aws.ToString(m.MessageId),
			Group:   m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
			Body:    queue.DecodeBody(aws.ToString(m.Body)),
			Attempt: attempt,
			Receipt: aws.ToString(m.ReceiptHandle),
		})
	}
	return got, nil
}

// Extend hides a delivery for d from now, rounded up to seconds; 0 gives the
// message back at once. queue.ErrNotInFlight when the delivery is over.
func (q *Queue) Extend(ctx context.Context, m queue.Message, d time.Duration) error {
	if d < 0 || d > queue.MaxVisibility {
		return fmt.Errorf("queue/sqs: extend by %s, 0 to %s are allowed", d, queue.MaxVisibility)
	}
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl:          &q.url,
		ReceiptHandle:     aws.String(m.Receipt),
		VisibilityTimeout: seconds(d, 0, queue.MaxVisibility),
	})
	if err == nil {
		return nil
	}
	var coded interface{ ErrorCode() string }
	if ctx.Err() == nil && errors.As(err, &coded) {
		// InvalidParameterValue means an expired receipt, because the gateway makes the other
		// parameters.
		switch strings.TrimPrefix(coded.ErrorCode(), "AWS.SimpleQueueService.") {
		case "MessageNotInflight", "MessageNotInFlight", "ReceiptHandleIsInvalid", "InvalidParameterValue":
			return queue.ErrNotInFlight
		}
	}
	return failed(ctx, "extend", err)
}
