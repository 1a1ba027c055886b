package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/queue"
)

// Batch handles queue messages and names those to be delivered again. An error
// means that none was handled.
type Batch func(ctx context.Context, messages []queue.Message) (failed []queue.Message, err error)

// SQS adapts a batch worker to a Lambda event source with partial failures. An
// error of the worker makes the whole batch come again.
func SQS(work Batch) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
		resp := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		messages := make([]queue.Message, 0, len(ev.Records))
		for _, r := range ev.Records {
			attempt, _ := strconv.Atoi(r.Attributes["ApproximateReceiveCount"])
			messages = append(messages, queue.Message{ID: r.MessageId, Group: r.Attributes["MessageGroupId"], Body: queue.DecodeBody(r.Body), Attempt: attempt, Receipt: r.ReceiptHandle})
		}
		if len(messages) == 0 {
			return resp, nil
		}
		failed, err := work(ctx, messages)
		if err != nil {
			return events.SQSEventResponse{}, fmt.Errorf("host: batch of %d: %w", len(messages), err)
		}
		for _, m := range failed {
			resp.BatchItemFailures = append(resp.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.ID})
		}
		return resp, nil
	}
}

// Task is one job that a schedule starts.
type Task func(ctx context.Context) error

// Schedule adapts named tasks to scheduler events of the form {"task":"name"}.
func Schedule(tasks map[string]Task) func(context.Context, json.RawMessage) error {
	return func(ctx context.Context, raw json.RawMessage) error {
		var ev struct {
			Task string `json:"task"`
		}
		if err := json.Unmarshal(raw, &ev); err != nil {
			return fmt.Errorf("host: schedule event: %w", err)
		}
		run, ok := tasks[ev.Task]
		if !ok {
			return fmt.Errorf("host: no task %q", ev.Task)
		}
		return run(ctx)
	}
}
