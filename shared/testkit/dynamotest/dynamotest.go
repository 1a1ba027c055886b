// Package dynamotest runs a DynamoDB emulator for tests and opens stores on it.
package dynamotest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/dynamo/emulator"
	"gateway/shared/testkit/storetest"
)

// Start returns the address of a DynamoDB for one test: AWS_ENDPOINT_URL if that is set,
// otherwise a separate emulator that ends with the test. If the emulator is not
// installed, the test is skipped, or fails when CI is set. With -short it is skipped too.
func Start(t testing.TB) (endpoint string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short tests the embedded store alone")
	}
	if !Emulated() {
		return os.Getenv("AWS_ENDPOINT_URL")
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	e, err := emulator.Start(root)
	if errors.Is(err, emulator.ErrMissing) && os.Getenv("CI") == "" {
		t.Skipf("NOT TESTED ON DYNAMODB: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e.URL()
}

// Emulated means that Start runs the emulator, instead of using AWS_ENDPOINT_URL.
func Emulated() bool { return os.Getenv("AWS_ENDPOINT_URL") == "" }

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the test's directory")
		}
		dir = up
	}
}

// Config is a configuration for an endpoint that Start gave, with the
// environment's credentials or, as an emulator takes any, made-up ones.
func Config(endpoint string) *aws.Config {
	id, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if id == "" {
		id, secret = "test", "test"
	}
	region := os.Getenv("AWS_REGION")
	if region == "" {
		region = "us-east-1"
	}
	cfg := &aws.Config{
		Region:       region,
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider(id, secret, os.Getenv("AWS_SESSION_TOKEN")),
		HTTPClient:   awshttp.NewBuildableClient(),
	}
	if Emulated() {
		cfg.HTTPClient = corrected{cfg.HTTPClient}
	}
	return cfg
}

// Open returns a store on separate tables, which are deleted after the test. The options
// change how it is opened.
func Open(t testing.TB, endpoint string, options ...func(*dynamo.Options)) *dynamo.Store {
	t.Helper()
	o := dynamo.Options{Prefix: "test-" + strings.ToLower(rand.Text()[:12]) + "-", Config: Config(endpoint)}
	for _, f := range options {
		f(&o)
	}
	s, err := dynamo.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		client := dynamodb.NewFromConfig(*Config(endpoint))
		for _, name := range store.TableNames {
			_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(o.Prefix + string(name))})
			if err != nil {
				t.Errorf("delete table %s: %v", name, err)
			}
		}
	})
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Deviations are the places where the emulator, dynoxide 1.2.1, differs from
// DynamoDB, as far as storetest meets them:
//
//   - begins_with on the sort key ignores the case of ASCII letters.
//   - REMOVE of m.k where the item has no m succeeds; DynamoDB rejects the path.
//   - An update that only has REMOVE makes an item that was not there.
//   - UpdateItem with ReturnValues ALL_OLD responds with the keys when the item
//     was not there; DynamoDB answers without Attributes. The client of Config
//     corrects this one, at the price that an item of nothing but its keys
//     counts as absent.
//
// Deviations is empty when AWS_ENDPOINT_URL names another service. A stand-in in front of
// the emulator counts as the emulator and reports it in a header.
func Deviations() []storetest.Deviation {
	if !Emulated() {
		res, err := http.Get(os.Getenv("AWS_ENDPOINT_URL"))
		if err != nil {
			return nil // the tests will show it
		}
		res.Body.Close()
		if res.Header.Get("X-Stand-In") != "dynoxide" {
			return nil
		}
	}
	return []storetest.Deviation{
		storetest.PrefixIgnoresCase, storetest.RemoveNeedsNoMap, storetest.RemoveMakesRow, storetest.EmptyIsAbsent,
	}
}

// corrected removes the attributes from a response to UpdateItem if they are only the keys.
type corrected struct{ aws.HTTPClient }

func (c corrected) Do(req *http.Request) (*http.Response, error) {
	res, err := c.HTTPClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK || !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".UpdateItem") {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	var answer struct{ Attributes map[string]json.RawMessage }
	if json.Unmarshal(body, &answer) == nil && len(answer.Attributes) == 2 &&
		answer.Attributes["pk"] != nil && answer.Attributes["sk"] != nil {
		body = []byte("{}")
		res.Header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return res, nil
}
