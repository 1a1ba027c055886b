package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
