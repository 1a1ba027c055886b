package standin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// makeTables makes the tables of the installation.
func (s *Services) makeTables(ctx context.Context) error {
	client := dynamodb.NewFromConfig(aws.Config{
		Region: Region, BaseEndpoint: &s.front.URL, HTTPClient: awshttp.NewBuildableClient(),
		Credentials: credentials.NewStaticCredentialsProvider("standin", "secret", ""),
	})
	for name, table := range Described().Tables {
		in := &dynamodb.CreateTableInput{TableName: aws.String(name), BillingMode: types.BillingMode(table.BillingMode)}
		for _, k := range table.KeySchema {
			in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(k.AttributeName), KeyType: types.KeyType(k.KeyType)})
		}
		for _, a := range table.AttributeDefinitions {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(a.AttributeName), AttributeType: types.ScalarAttributeType(a.AttributeType)})
		}
		if _, err := client.CreateTable(ctx, in); err != nil {
			return fmt.Errorf("standin: table %s: %w", name, err)
		}
		_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String(name), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(table.TimeToLive), Enabled: aws.Bool(true)},
		})
		if err != nil {
			return fmt.Errorf("standin: table %s: %w", name, err)
		}
	}
	return nil
}

// likeDynamoDB is a proxy of the emulator. It removes from UpdateItem's responses what DynamoDB
// would not return: the keys of an item that did not exist.
func likeDynamoDB(emulator string) (*httptest.Server, error) {
	to, err := url.Parse(emulator)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = withoutKeys
	// Many functions call at the same time, and each has its own connections.
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
	return httptest.NewServer(proxy), nil
}

func withoutKeys(res *http.Response) error {
	if res.StatusCode != http.StatusOK || !strings.HasSuffix(res.Request.Header.Get("X-Amz-Target"), ".UpdateItem") {
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var answer struct{ Attributes map[string]json.RawMessage }
	if json.Unmarshal(body, &answer) == nil && len(answer.Attributes) == 2 && answer.Attributes["pk"] != nil && answer.Attributes["sk"] != nil {
		body = []byte("{}")
		res.Header.Del("X-Amz-Crc32")
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return nil
}
