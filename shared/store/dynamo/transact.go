package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"gateway/shared/store"
)

// Transact does all actions or none. If the answer of a call was lost, it is repeated under
// the same token, so it is done only once. If a call was cancelled by a conflict or by
// throttling, it is tried again, under the same token if an earlier answer was lost.
func (s *Store) Transact(ctx context.Context, actions ...store.Action) error {
	if err := store.ValidateActions(actions); err != nil {
		return err
	}
	if len(actions) == 0 {
		return ctx.Err()
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: make([]types.TransactWriteItem, len(actions))}
	for i := range actions {
		in.TransactItems[i] = s.transactItem(&actions[i])
	}
	perhaps := false // an attempt may have been done
	for attempt := 1; ; attempt++ {
		if !perhaps {
			in.ClientRequestToken = aws.String(rand.Text())
		}
		err := s.doAgain(ctx, repeat, &perhaps, func(ctx context.Context) error {
			_, err := s.client.TransactWriteItems(ctx, in)
			return err
		})
		var cancelled *types.TransactionCanceledException
		if !errors.As(err, &cancelled) {
			return refusal(err)
		}
		err = reasonFor(cancelled, actions)
		if !errors.Is(err, store.ErrContended) && !errors.Is(err, store.ErrThrottled) {
			return err
		}
		switch {
		case attempt < s.attempts:
		case perhaps:
			return fmt.Errorf("%w: %w", store.ErrUncertain, cancelled)
		default:
			return err
		}
		if err := s.wait(ctx, attempt); err != nil {
			return err
		}
	}
}

func (s *Store) transactItem(a *store.Action) types.TransactWriteItem {
	var e expression
	name := s.tables[a.Table].dynamo
	switch {
	case a.Put != nil:
		p := &types.Put{TableName: name, Item: encodeRow(a.Put.Row), ConditionExpression: e.conditions(a.Put.If)}
		p.ExpressionAttributeNames, p.ExpressionAttributeValues = e.names, e.values
		p.ReturnValuesOnConditionCheckFailure = allOld
		return types.TransactWriteItem{Put: p}
	case a.Update != nil:
		u := &types.Update{TableName: name, Key: encodeKey(a.Update.Key)}
		u.UpdateExpression, u.ConditionExpression = e.update(a.Update)
		u.ExpressionAttributeNames, u.ExpressionAttributeValues = e.names, e.values
		u.ReturnValuesOnConditionCheckFailure = allOld
		return types.TransactWriteItem{Update: u}
	case a.Delete != nil:
		d := &types.Delete{TableName: name, Key: encodeKey(a.Delete.Key), ConditionExpression: e.conditions(a.Delete.If)}
		d.ExpressionAttributeNames, d.ExpressionAttributeValues = e.names, e.values
		d.ReturnValuesOnConditionCheckFailure = allOld
		return types.TransactWriteItem{Delete: d}
	}
	c := &types.ConditionCheck{TableName: name, Key: encodeKey(a.Check.Key), ConditionExpression: e.conditions(a.Check.If)}
	c.ExpressionAttributeNames, c.ExpressionAttributeValues = e.names, e.values
	c.ReturnValuesOnConditionCheckFailure = allOld
	return types.TransactWriteItem{ConditionCheck: c}
}

// reasonFor reads the reasons of a cancelled transaction, one for each action. Final
// reasons take precedence over reasons that may pass.
func reasonFor(cancelled *types.TransactionCanceledException, actions []store.Action) error {
	var passing error
	for i, r := range cancelled.CancellationReasons {
		if i >= len(actions) {
			break
		}
		a := &actions[i]
		switch aws.ToString(r.Code) {
		case "", "None":
		case "ConditionalCheckFailed":
			return conditionError(i, a.Target(), a.Conds(), a.Update, r.Item)
		case "ValidationError":
			return validation(aws.ToString(r.Message))
		case "ItemCollectionSizeLimitExceeded":
			return store.ErrTooLarge
		case "DuplicateItem":
			return store.ErrDuplicate
		case "TransactionConflict":
			passing = store.ErrContended
		case "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
			if passing == nil {
				passing = store.ErrThrottled
			}
		default:
			return fmt.Errorf("store: dynamodb: transaction cancelled: %s", aws.ToString(r.Code))
		}
	}
	if passing == nil {
		passing = store.ErrContended // no action caused the cancellation
	}
	return passing
}
