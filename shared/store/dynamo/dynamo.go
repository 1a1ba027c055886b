// Package dynamo is the store on DynamoDB: one table for each store.TableName, with the
// keys pk and sk (strings), the attribute expires (epoch seconds, the table's TTL) and no
// index.
//
// Every conditional write requests the previous row (ReturnValuesOnConditionCheckFailure
// and ReturnValues ALL_OLD). DynamoDB returns a row either before or after an update. So
// store.Update.Apply computes the row after the update from the row before, by the rules
// of DynamoDB (storetest compares them).
//
// Rejected operations without an effect are repeated: after throttling and after
// conflicts with a transaction. After a lost response, an operation is only repeated if
// it is idempotent; otherwise the error is store.ErrUncertain.
package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"gateway/shared/store"
)

// Options of New. The zero value of each is its default.
type Options struct {
	// Prefix comes before the table's name: "gateway-" makes gateway-control.
	Prefix string
	// Config has the credentials, the Region and the HTTP client. A plain *http.Client fails
	// where AWS_CA_BUNDLE is set: make it with awshttp.NewBuildableClient.
	Config *aws.Config
	// Attempts is the most calls for one operation that is throttled or meets a conflict;
	// five.
	Attempts int
	// Backoff is the first wait before a repetition; the waits double, up to
	// twenty times the first, each shortened at random. 25 ms.
	Backoff time.Duration
	// Clock is the time that expiry is measured by; time.Now.
	Clock func() time.Time
}

// Store is a store.Store on DynamoDB.
type Store struct {
	client   *dynamodb.Client
	prefix   string
	attempts int
	backoff  time.Duration
	clock    func() time.Time
	tables   map[store.TableName]*table
}

var _ store.Store = (*Store)(nil)

// New returns a store. Nothing is sent before its first use.
func New(o Options) (*Store, error) {
	if o.Config == nil {
		return nil, errors.New("store: dynamodb: no configuration")
	}
	client := dynamodb.NewFromConfig(*o.Config, func(c *dynamodb.Options) {
		// This package knows which calls may be repeated; the SDK does not.
		c.Retryer = aws.NopRetryer{}
	})
	s := &Store{
		client: client, prefix: o.Prefix, attempts: o.Attempts, backoff: o.Backoff, clock: o.Clock,
		tables: make(map[store.TableName]*table, len(store.TableNames)),
	}
	if s.attempts <= 0 {
		s.attempts = 5
	}
	if s.backoff <= 0 {
		s.backoff = 25 * time.Millisecond
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	for _, name := range store.TableNames {
		s.tables[name] = &table{s: s, name: name, dynamo: aws.String(o.Prefix + string(name))}
	}
	return s, nil
}

// Table returns one of store.TableNames. The operations on any other name fail with
// store.ErrInvalid.
func (s *Store) Table(name store.TableName) store.Table {
	if t := s.tables[name]; t != nil {
		return t
	}
	return &table{s: s, name: name}
}

// Close does nothing: the connections belong to the HTTP client.
func (s *Store) Close() error { return nil }

// CreateTables makes the tables that are missing, billed on demand and with the
// TTL on, and waits until they can be used. For tests and local endpoints: in an
// AWS account the tables belong to the stack.
func (s *Store) CreateTables(ctx context.Context) error {
	for _, t := range s.tables {
		err := s.do(ctx, repeat, func(ctx context.Context) error {
			_, err := s.client.CreateTable(ctx, &dynamodb.CreateTableInput{
				TableName:   t.dynamo,
				BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{
					{AttributeName: aws.String(attrPK), AttributeType: types.ScalarAttributeTypeS},
					{AttributeName: aws.String(attrSK), AttributeType: types.ScalarAttributeTypeS},
				},
				KeySchema: []types.KeySchemaElement{
					{AttributeName: aws.String(attrPK), KeyType: types.KeyTypeHash},
					{AttributeName: aws.String(attrSK), KeyType: types.KeyTypeRange},
				},
			})
			return err
		})
		var there *types.ResourceInUseException
		if err != nil && !errors.As(err, &there) {
			return fmt.Errorf("store: create table %s: %w", *t.dynamo, err)
		}
	}
	for _, t := range s.tables {
		if err := s.finishTable(ctx, t); err != nil {
			return fmt.Errorf("store: create table %s: %w", *t.dynamo, err)
		}
	}
	return nil
}

func (s *Store) finishTable(ctx context.Context, t *table) error {
	ready := dynamodb.NewTableExistsWaiter(s.client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, 5*time.Second
	})
	if err := ready.Wait(ctx, &dynamodb.DescribeTableInput{TableName: t.dynamo}, 2*time.Minute); err != nil {
		return err
	}
	if err := s.ours(ctx, t); err != nil {
		return err
	}
	err := s.do(ctx, repeat, func(ctx context.Context) error {
		_, err := s.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: t.dynamo,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{
				AttributeName: aws.String(attrExpires), Enabled: aws.Bool(true),
			},
		})
		return err
	})
	if err != nil && strings.Contains(err.Error(), "already enabled") {
		return nil
	}
	return err
}

// ours is an error when a table that existed before has another key.
func (s *Store) ours(ctx context.Context, t *table) error {
	var key []string
	err := s.do(ctx, read, func(ctx context.Context) error {
		got, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: t.dynamo})
		if err != nil {
			return err
		}
		key = key[:0]
		for _, e := range got.Table.KeySchema {
			key = append(key, aws.ToString(e.AttributeName)+" "+string(e.KeyType))
		}
		return nil
	})
	if err == nil && !slices.Equal(key, []string{attrPK + " HASH", attrSK + " RANGE"}) {
		err = fmt.Errorf("it already exists with another key (%s): set GATEWAY_TABLE_PREFIX to another prefix, or delete it", strings.Join(key, ", "))
	}
	return err
}

// Transact does all actions or none. If the response of a call was lost, it is repeated under
// the same token, so it is done only once. If a call was canceled by a conflict or by
// throttling, it is tried again, under the same token if an earlier response was lost.
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
			return rejection(err)
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

// reasonFor reads the reasons of a canceled transaction, one for each action. Final
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
