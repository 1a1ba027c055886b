package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"gateway/shared/store"
)

const allOld = types.ReturnValuesOnConditionCheckFailureAllOld

// table is one of the store's tables; dynamo is nil for an unknown one.
type table struct {
	s      *Store
	name   store.TableName
	dynamo *string
}

func (t *table) known() error {
	if t.dynamo == nil {
		return fmt.Errorf("%w: unknown table %q", store.ErrInvalid, t.name)
	}
	return nil
}

func (t *table) expired(expires int64) bool {
	return expires != 0 && expires <= t.s.clock().Unix()
}

func (t *table) Get(ctx context.Context, key store.Key, consistent bool) (store.Item, bool, error) {
	if err := t.known(); err != nil {
		return nil, false, err
	}
	if err := key.Validate(); err != nil {
		return nil, false, err
	}
	var out *dynamodb.GetItemOutput
	err := t.s.do(ctx, read, func(ctx context.Context) (err error) {
		out, err = t.s.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: t.dynamo, Key: encodeKey(key), ConsistentRead: aws.Bool(consistent),
		})
		return err
	})
	if err != nil {
		return nil, false, refusal(err)
	}
	if len(out.Item) == 0 {
		return nil, false, nil
	}
	row, expires, err := decodeRow(out.Item)
	if err != nil || t.expired(expires) {
		return nil, false, err
	}
	return row.Item, true, nil
}

func (t *table) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	if err := t.known(); err != nil {
		return err
	}
	if err := row.Validate(); err != nil {
		return err
	}
	if err := store.ValidateConds(conds); err != nil {
		return err
	}
	var e expression
	in := &dynamodb.PutItemInput{TableName: t.dynamo, Item: encodeRow(row), ConditionExpression: e.conditions(conds)}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	if len(conds) > 0 {
		in.ReturnValuesOnConditionCheckFailure = allOld
	}
	err := t.s.do(ctx, repeatUnless(conds), func(ctx context.Context) error {
		_, err := t.s.client.PutItem(ctx, in)
		return err
	})
	return t.refusal(err, row.Key, conds, nil)
}

// repeatUnless is for repeated writes: if the first one was done, the conditions mostly
// fail.
func repeatUnless(conds []store.Cond) kind {
	if len(conds) > 0 {
		return once
	}
	return repeat
}

func (t *table) refusal(err error, key store.Key, conds []store.Cond, u *store.Update) error {
	if row, failed := conditionFailed(err); failed {
		return conditionError(0, key, conds, u, row)
	}
	return refusal(err)
}

func (t *table) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	if err := t.known(); err != nil {
		return nil, nil, err
	}
	if err := u.Validate(); err != nil {
		return nil, nil, err
	}
	var e expression
	in := &dynamodb.UpdateItemInput{
		TableName: t.dynamo, Key: encodeKey(u.Key),
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: allOld,
	}
	in.UpdateExpression, in.ConditionExpression = e.update(&u)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	var out *dynamodb.UpdateItemOutput
	err = t.s.do(ctx, once, func(ctx context.Context) (err error) {
		out, err = t.s.client.UpdateItem(ctx, in)
		return err
	})
	if err != nil {
		return nil, nil, t.refusal(err, u.Key, u.If, &u)
	}
	if before, err = decodeItem(out.Attributes); err != nil {
		return nil, nil, err
	}
	if after, err = u.Apply(before); err != nil {
		return nil, nil, err
	}
	before, after = u.Result(before, after)
	return before, after, nil
}

func (t *table) Delete(ctx context.Context, key store.Key, conds ...store.Cond) error {
	if err := t.known(); err != nil {
		return err
	}
	if err := key.Validate(); err != nil {
		return err
	}
	if err := store.ValidateConds(conds); err != nil {
		return err
	}
	var e expression
	in := &dynamodb.DeleteItemInput{TableName: t.dynamo, Key: encodeKey(key), ConditionExpression: e.conditions(conds)}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	if len(conds) > 0 {
		in.ReturnValuesOnConditionCheckFailure = allOld
	}
	err := t.s.do(ctx, repeatUnless(conds), func(ctx context.Context) error {
		_, err := t.s.client.DeleteItem(ctx, in)
		return err
	})
	return t.refusal(err, key, conds, nil)
}
