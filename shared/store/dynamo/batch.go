package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"gateway/shared/store"
)

// DynamoDB's own batch sizes.
const (
	batchGet   = 100
	batchWrite = 25
)

// errUnprocessed is a batch of which DynamoDB left some items undone, which is how it
// throttles batches.
var errUnprocessed = fmt.Errorf("%w: part of a batch was left over", store.ErrThrottled)

// GetMany reads rows in batches. A batch is returned in part if it is large or the table
// is busy. The rest is requested again, without a wait as long as there is progress.
func (t *table) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	if err := t.known(); err != nil {
		return nil, err
	}
	asked := make(map[store.Key]bool, len(keys))
	var unique []attributes
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
		if !asked[k] {
			asked[k] = true
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
		return nil, 0, refusal(err)
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
			return refusal(err)
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
