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
		return nil, false, rejection(err)
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
	return t.rejection(err, row.Key, conds, nil)
}

// repeatUnless is for repeated writes: if the first one was done, the conditions mostly
// fail.
func repeatUnless(conds []store.Cond) kind {
	if len(conds) > 0 {
		return once
	}
	return repeat
}

func (t *table) rejection(err error, key store.Key, conds []store.Cond, u *store.Update) error {
	if row, failed := conditionFailed(err); failed {
		return conditionError(0, key, conds, u, row)
	}
	return rejection(err)
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
		return nil, nil, t.rejection(err, u.Key, u.If, &u)
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
	return t.rejection(err, key, conds, nil)
}

// Query reads one page. Rows past their expiry are filtered out by DynamoDB, but count for
// its limit, so a page may need several calls.
func (t *table) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := t.known(); err != nil {
		return store.Page{}, err
	}
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	in, any := t.queryInput(&q)
	if !any {
		return store.Page{}, ctx.Err()
	}
	var page store.Page
	for {
		if q.Limit > 0 {
			in.Limit = aws.Int32(int32(min(q.Limit-page.Count, 1<<30)))
		}
		var out *dynamodb.QueryOutput
		err := t.s.do(ctx, read, func(ctx context.Context) (err error) {
			out, err = t.s.client.Query(ctx, in)
			return err
		})
		if err != nil {
			return store.Page{}, rejection(err)
		}
		page.Count += int(out.Count)
		for _, m := range out.Items {
			row, _, err := decodeRow(m)
			if err != nil {
				return store.Page{}, err
			}
			page.Rows = append(page.Rows, row)
		}
		if page.Next, err = next(out.LastEvaluatedKey); err != nil || page.Next == "" {
			return page, err
		}
		bySize := in.Limit == nil || out.ScannedCount < *in.Limit
		if page.Count == q.Limit && q.Limit > 0 || bySize && page.Count > 0 {
			return page, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func next(last attributes) (string, error) {
	if len(last) == 0 {
		return "", nil
	}
	sk, ok := last[attrSK].(*types.AttributeValueMemberS)
	if !ok {
		return "", errForeign
	}
	return sk.Value, nil
}

// queryInput is the request without its limit; any is false when no key can be within the
// bounds, which DynamoDB would reject.
func (t *table) queryInput(q *store.Query) (in *dynamodb.QueryInput, any bool) {
	var e expression
	str := func(s string) string { return e.value(&types.AttributeValueMemberS{Value: s}) }
	expires := e.name(attrExpires)
	keys := attrPK + " = " + str(q.Partition.String())
	switch {
	case q.Prefix != "":
		keys += " AND begins_with(" + attrSK + ", " + str(q.Prefix) + ")"
	case q.From != "" && q.To != "":
		if q.From > q.To {
			return nil, false
		}
		keys += " AND " + attrSK + " BETWEEN " + str(q.From) + " AND " + str(q.To)
	case q.From != "":
		keys += " AND " + attrSK + " >= " + str(q.From)
	case q.To != "":
		keys += " AND " + attrSK + " <= " + str(q.To)
	}
	filter := "attribute_not_exists(" + expires + ") OR " + expires + " > " + e.value(number(t.s.clock().Unix()))
	in = &dynamodb.QueryInput{
		TableName:              t.dynamo,
		KeyConditionExpression: aws.String(keys),
		FilterExpression:       aws.String(filter),
		ConsistentRead:         aws.Bool(!q.Eventual),
		ScanIndexForward:       aws.Bool(!q.Reverse),
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	if q.CountOnly {
		in.Select = types.SelectCount
	}
	start, any := startAfter(q)
	if start != "" {
		in.ExclusiveStartKey = encodeKey(q.Partition.Key(start))
	}
	return in, any
}

// startAfter is After if it is within the bounds; DynamoDB rejects others. Before the
// bounds it is not needed; after them there are no rows.
func startAfter(q *store.Query) (start string, any bool) {
	if q.After == "" {
		return "", true
	}
	below, above := q.After < q.From, q.To != "" && q.After > q.To
	if q.Prefix != "" {
		inside := len(q.After) >= len(q.Prefix) && q.After[:len(q.Prefix)] == q.Prefix
		below, above = !inside && q.After < q.Prefix, !inside && q.After > q.Prefix
	}
	if q.Reverse {
		below, above = above, below
	}
	switch {
	case below:
		return "", true
	case above:
		return "", false
	}
	return q.After, true
}
