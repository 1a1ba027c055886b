package sqs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"gateway/shared/queue"
)

// Send sends messages in batches of up to ten and 1 MiB. Entries that failed by SQS's fault
// are sent again; those that still failed are named by a *queue.SendError. All batches are
// tried.
func (q *Queue) Send(ctx context.Context, messages ...queue.Outgoing) error {
	if err := queue.CheckAll(messages); err != nil {
		return err
	}
	var rejected []int
	var cause error
	for start := 0; start < len(messages); {
		end, entries := fill(messages, start)
		bad, err := q.sendBatch(ctx, entries)
		for _, i := range bad {
			rejected = append(rejected, start+i)
		}
		if cause == nil {
			cause = err
		}
		start = end
	}
	if cause == nil {
		return nil
	}
	return &queue.SendError{Accepted: len(messages) - len(rejected), Rejected: rejected, Cause: cause}
}

// fill makes the batch of messages[start:end].
func fill(messages []queue.Outgoing, start int) (end int, entries []types.SendMessageBatchRequestEntry) {
	size := 0
	for end = start; end < len(messages) && len(entries) < batchEntries; end++ {
		m := &messages[end]
		body := queue.EncodeBody(m.Body)
		if size += len(body); size > batchBytes {
			break
		}
		e := types.SendMessageBatchRequestEntry{
			Id:           aws.String(strconv.Itoa(end - start)),
			MessageBody:  aws.String(body),
			DelaySeconds: seconds(m.Delay, 0, queue.MaxDelay),
		}
		if m.Group != "" {
			e.MessageGroupId = aws.String(m.Group)
		}
		entries = append(entries, e)
	}
	return end, entries
}

// sendBatch returns the positions of the entries that were not accepted.
func (q *Queue) sendBatch(ctx context.Context, entries []types.SendMessageBatchRequestEntry) (rejected []int, cause error) {
	positions := make([]int, len(entries))
	for i := range positions {
		positions[i] = i
	}
	for try := 0; ; try++ {
		out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: entries})
		if err != nil {
			return append(rejected, positions...), failed(ctx, "send", err)
		}
		accepted := make([]*string, len(out.Successful))
		for i := range accepted {
			accepted[i] = out.Successful[i].Id
		}
		o := settle(len(entries), accepted, out.Failed)
		if o.cause != nil {
			cause = failed(ctx, "send", o.cause)
		}
		for _, i := range o.rejected {
			rejected = append(rejected, positions[i])
		}
		entries, positions = retryBatch(entries, positions, o.retry)
		if len(entries) > 0 && try+1 < entryTries && pause(ctx, try) {
			continue
		}
		if rejected = append(rejected, positions...); len(rejected) == 0 {
			return nil, nil
		}
		return rejected, cause
	}
}

// retryBatch makes the next batch of the entries at the given indexes, with new ids.
func retryBatch(entries []types.SendMessageBatchRequestEntry, positions, at []int) ([]types.SendMessageBatchRequestEntry, []int) {
	var e []types.SendMessageBatchRequestEntry
	var p []int
	for n, i := range at {
		entry := entries[i]
		entry.Id = aws.String(strconv.Itoa(n))
		e, p = append(e, entry), append(p, positions[i])
	}
	return e, p
}

// Delete acknowledges deliveries in batches of ten. Entries that failed by SQS's fault are sent
// again. All batches are tried; the error contains the number that remain.
func (q *Queue) Delete(ctx context.Context, messages ...queue.Message) error {
	left := 0
	var cause error
	for start := 0; start < len(messages); start += batchEntries {
		n, err := q.deleteBatch(ctx, messages[start:min(start+batchEntries, len(messages))])
		left += n
		if cause == nil {
			cause = err
		}
	}
	if cause == nil {
		return nil
	}
	return fmt.Errorf("queue/sqs: %d of %d deliveries not deleted: %w", left, len(messages), cause)
}

// deleteBatch returns the number of entries that were not deleted.
func (q *Queue) deleteBatch(ctx context.Context, messages []queue.Message) (left int, cause error) {
	receipts := make([]string, len(messages))
	for i := range messages {
		receipts[i] = messages[i].Receipt
	}
	for try := 0; ; try++ {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(receipts))
		for i := range receipts {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &receipts[i]}
		}
		out, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: entries})
		if err != nil {
			return left + len(receipts), failed(ctx, "delete", err)
		}
		accepted := make([]*string, len(out.Successful))
		for i := range accepted {
			accepted[i] = out.Successful[i].Id
		}
		o := settle(len(entries), accepted, out.Failed)
		if o.cause != nil {
			cause = failed(ctx, "delete", o.cause)
		}
		left += len(o.rejected)
		var again []string
		for _, i := range o.retry {
			again = append(again, receipts[i])
		}
		if receipts = again; len(receipts) > 0 && try+1 < entryTries && pause(ctx, try) {
			continue
		}
		if left += len(receipts); left == 0 {
			return 0, nil
		}
		return left, cause
	}
}
