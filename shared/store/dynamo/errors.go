package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"gateway/shared/store"
)

// verdict is the outcome of an operation according to the error of its call.
type verdict uint8

const (
	definite  verdict = iota // rejected for a reason that will not pass
	throttled                // not done; too many calls
	contended                // not done; a transaction was using the row
	unsent                   // not done; the call or its rejection did not get through
	lost                     // it may have been done
)

// kind determines whether a call can be repeated.
type kind uint8

const (
	read   kind = iota
	repeat      // a write that may be done twice
	once        // a write that must not be done twice
)

// do makes one call, repeats it as its kind allows, and returns the errors of package
// store. A final rejection comes as *rejected.
func (s *Store) do(ctx context.Context, k kind, call func(context.Context) error) error {
	perhaps := false
	return s.doAgain(ctx, k, &perhaps, call)
}

// doAgain is do for a call that may have been made before. perhaps means that an attempt may
// have been done, and is set accordingly.
func (s *Store) doAgain(ctx context.Context, k kind, perhaps *bool, call func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := call(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("store: dynamodb: %w", ctx.Err())
		}
		v := classify(err)
		*perhaps = *perhaps || v == lost && k != read
		switch {
		case v == definite:
			return &rejected{err}
		case *perhaps && (k == once || attempt >= s.attempts):
			return fmt.Errorf("%w: %w", store.ErrUncertain, err)
		case attempt >= s.attempts:
			return giveUp(v, err)
		}
		if err := s.wait(ctx, attempt); err != nil {
			return err
		}
	}
}

// giveUp is the error of an operation that was not done.
func giveUp(v verdict, err error) error {
	switch v {
	case throttled:
		return fmt.Errorf("%w: %w", store.ErrThrottled, err)
	case contended:
		return fmt.Errorf("%w: %w", store.ErrContended, err)
	}
	return fmt.Errorf("store: dynamodb: %w", err)
}

// wait sleeps before the repetition that follows the attempt (from 1).
func (s *Store) wait(ctx context.Context, attempt int) error {
	d := min(s.backoff<<(min(attempt, 10)-1), 20*s.backoff)
	t := time.NewTimer(d/4 + rand.N(d-d/4))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("store: dynamodb: %w", ctx.Err())
	}
}

func classify(err error) verdict {
	var api smithy.APIError
	if !errors.As(err, &api) {
		var op *net.OpError
		var dns *net.DNSError
		if errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns) {
			return unsent
		}
		var serial *smithy.SerializationError
		if errors.As(err, &serial) {
			return definite
		}
		var res *smithyhttp.ResponseError
		if errors.As(err, &res) && res.HTTPStatusCode() >= 400 && res.HTTPStatusCode() < 500 {
			return unsent // rejected, for a reason that was lost on the way
		}
		return lost // sent, or it must be assumed to be
	}
	switch api.ErrorCode() {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "ThrottlingError",
		"RequestLimitExceeded", "TooManyRequestsException", "SlowDown":
		return throttled
	case "TransactionConflictException", "TransactionInProgressException":
		return contended
	case "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture":
		return unsent // by now the SDK knows the difference of the clocks
	case "InternalServerError", "InternalFailure", "ServiceUnavailable", "RequestTimeout", "RequestTimeoutException":
		return lost
	}
	if api.ErrorFault() == smithy.FaultServer {
		return lost
	}
	return definite
}

// rejected is a definite error of a call, not yet read.
type rejected struct{ err error }

func (r *rejected) Error() string { return "store: dynamodb: " + r.err.Error() }
func (r *rejected) Unwrap() error { return r.err }

// rejection turns a final rejection of DynamoDB into an error of package store.
func rejection(err error) error {
	var r *rejected
	var api smithy.APIError
	if errors.As(err, &r) && errors.As(err, &api) && api.ErrorCode() == "ValidationException" {
		return validation(api.ErrorMessage())
	}
	return err
}

// validation reads the message of a ValidationException, from a call or from one action of
// a transaction, because DynamoDB has no codes for these.
func validation(message string) error {
	switch {
	case strings.Contains(message, "document path"):
		return store.ErrNoMap
	case strings.Contains(message, "tem size"):
		return store.ErrTooLarge
	case strings.Contains(message, "incorrect data type"):
		return fmt.Errorf("%w: adding to what is not a number", store.ErrInvalid)
	}
	return fmt.Errorf("%w: DynamoDB: %s", store.ErrInvalid, message)
}

// conditionFailed returns the row of a failed condition.
func conditionFailed(err error) (attributes, bool) {
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return nil, false
	}
	return failed.Item, true
}

// conditionError is the error for an action with a false condition. If the caller's
// conditions hold, the guard of a sum failed.
func conditionError(action int, key store.Key, conds []store.Cond, u *store.Update, row attributes) error {
	current, err := decodeItem(row)
	if err != nil {
		return err
	}
	if u != nil && store.Satisfies(conds, current) {
		if _, err := u.Apply(current); err != nil {
			return err
		}
	}
	return &store.ConditionError{Action: action, Key: key, Current: current}
}

// DynamoDB's own batch sizes.
const (
	batchGet   = 100
	batchWrite = 25
)

// errUnprocessed is a batch of which DynamoDB left some items undone, which is how it
// throttles batches.
var errUnprocessed = fmt.Errorf("%w: part of a batch was not processed", store.ErrThrottled)

// GetMany reads rows in batches. A batch is returned in part if it is large or the table
// is busy. The rest is requested again, without a wait as long as there is progress.
func (t *table) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	if err := t.known(); err != nil {
		return nil, err
	}
	requested := make(map[store.Key]bool, len(keys))
	var unique []attributes
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
		if !requested[k] {
			requested[k] = true
			unique = append(unique, encodeKey(k))
		}
	}
	found := make(map[store.Key]store.Item, len(unique))
	if len(unique) == 0 {
		return found, ctx.Err()
	}
	idle := 0 // answers in a row without a single item
	for len(unique) > 0 {
		n := min(len(unique), batchGet)
		left, got, err := t.getBatch(ctx, unique[:n], found)
		if err != nil {
			return nil, err
		}
		unique = append(left, unique[n:]...)
		if len(left) == 0 || got > 0 {
			idle = 0
			continue
		}
		if idle++; idle >= t.s.attempts {
			return nil, errUnprocessed
		}
		if err := t.s.wait(ctx, idle); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (t *table) getBatch(ctx context.Context, keys []attributes, found map[store.Key]store.Item) (left []attributes, got int, err error) {
	in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		*t.dynamo: {Keys: keys, ConsistentRead: aws.Bool(true)},
	}}
	var out *dynamodb.BatchGetItemOutput
	err = t.s.do(ctx, read, func(ctx context.Context) (err error) {
		out, err = t.s.client.BatchGetItem(ctx, in)
		return err
	})
	if err != nil {
		return nil, 0, rejection(err)
	}
	rows := out.Responses[*t.dynamo]
	for _, m := range rows {
		row, expires, err := decodeRow(m)
		if err != nil {
			return nil, 0, err
		}
		if !t.expired(expires) {
			found[row.Key] = row.Item
		}
	}
	return out.UnprocessedKeys[*t.dynamo].Keys, len(rows), nil
}

// PutMany writes rows in batches. If a key comes twice, the last row is written.
func (t *table) PutMany(ctx context.Context, rows []store.Row) error {
	if err := t.known(); err != nil {
		return err
	}
	place := make(map[store.Key]int, len(rows))
	var puts []types.WriteRequest
	for _, r := range rows {
		if err := r.Validate(); err != nil {
			return err
		}
		w := types.WriteRequest{PutRequest: &types.PutRequest{Item: encodeRow(r)}}
		if i, twice := place[r.Key]; twice {
			puts[i] = w
			continue
		}
		place[r.Key] = len(puts)
		puts = append(puts, w)
	}
	if len(puts) == 0 {
		return ctx.Err()
	}
	idle := 0
	for len(puts) > 0 {
		n := min(len(puts), batchWrite)
		var out *dynamodb.BatchWriteItemOutput
		err := t.s.do(ctx, repeat, func(ctx context.Context) (err error) {
			out, err = t.s.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{*t.dynamo: puts[:n]},
			})
			return err
		})
		if err != nil {
			return rejection(err)
		}
		left := out.UnprocessedItems[*t.dynamo]
		puts = append(left, puts[n:]...)
		if len(left) == 0 {
			idle = 0
			continue
		}
		if len(left) < n {
			idle = 0 // some progress: wait the shortest time
		}
		if idle++; idle >= t.s.attempts {
			return errUnprocessed
		}
		if err := t.s.wait(ctx, idle); err != nil {
			return err
		}
	}
	return nil
}
