package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/queue"
)

// Batch handles queue messages and returns those to deliver again. An error means that
// none was handled. Batch and Task are the entry points of all background work;
// DECISION.md lists other possible callers.
type Batch func(ctx context.Context, messages []queue.Message) (failed []queue.Message, err error)

// SQS adapts a batch worker to a Lambda event source with partial failures. If the worker
// returns an error, the entire batch is delivered again.
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

// Task is a scheduled job.
type Task func(ctx context.Context) error

// Query is a job that an operator starts and that returns a result.
type Query func(ctx context.Context) (any, error)

// Tasks adapts named tasks and queries to events of the form {"task":"name"}, sent by a
// schedule or an operator. A task returns null.
func Tasks(tasks map[string]Task, questions map[string]Query) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var ev struct {
			Task string `json:"task"`
		}
		if err := json.Unmarshal(raw, &ev); err != nil {
			return nil, fmt.Errorf(`host: the event must be an object such as {"task":"name"}: %w`, err)
		}
		if query, ok := questions[ev.Task]; ok {
			return query(ctx)
		}
		run, ok := tasks[ev.Task]
		if !ok {
			names := append(slices.Collect(maps.Keys(tasks)), slices.Collect(maps.Keys(questions))...)
			slices.Sort(names)
			return nil, fmt.Errorf("host: there is no task %q; there are %s", ev.Task, strings.Join(names, ", "))
		}
		return nil, run(ctx)
	}
}
