package dynamo_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"gateway/shared/store/dynamo"
	"gateway/shared/testkit/dynamotest"
)

// A table of that name with another key belongs to another application.
func TestCreateTablesBesideAnother(t *testing.T) {
	t.Parallel()
	config := dynamotest.Config(dynamotest.Start(t))
	_, err := dynamodb.NewFromConfig(*config).CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("somebodys-keys"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := dynamo.New(dynamo.Options{Prefix: "somebodys-", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	err = s.CreateTables(t.Context())
	if err == nil || !strings.Contains(err.Error(), "table somebodys-keys: it already exists with another key (id HASH)") || !strings.Contains(err.Error(), "GATEWAY_TABLE_PREFIX") {
		t.Errorf("%v", err)
	}
}
