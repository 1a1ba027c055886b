package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"gateway/shared/store"
)

// Options of New. The zero value of each is its default.
type Options struct {
	// Prefix stands before the table's name: "gateway-" makes gateway-control.
	Prefix string
	// Config is the configuration to use, when the caller shares one among its
	// clients; else it is loaded from the environment and the files of AWS.
	Config *aws.Config
	// Region and Endpoint replace those of the configuration.
	Region, Endpoint string
	// HTTPClient replaces the configuration's. A plain *http.Client fails where
	// AWS_CA_BUNDLE is set: make it with awshttp.NewBuildableClient.
	HTTPClient aws.HTTPClient
	// Attempts is the most calls made for one operation that is throttled or
	// meets a conflict; five.
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

// New makes a store. Nothing is sent before its first use.
func New(ctx context.Context, o Options) (*Store, error) {
	cfg := o.Config
	if cfg == nil {
		load := []func(*config.LoadOptions) error{config.WithHTTPClient(newHTTPClient())}
		if o.Region != "" {
			load = append(load, config.WithRegion(o.Region))
		}
		loaded, err := config.LoadDefaultConfig(ctx, load...)
		if err != nil {
			return nil, fmt.Errorf("store: dynamodb: %w", err)
		}
		cfg = &loaded
	}
	client := dynamodb.NewFromConfig(*cfg, func(c *dynamodb.Options) {
		// This package knows which calls may be repeated; the SDK does not.
		c.Retryer = aws.NopRetryer{}
		if o.Region != "" {
			c.Region = o.Region
		}
		if o.Endpoint != "" {
			c.BaseEndpoint = aws.String(o.Endpoint)
		}
		if o.HTTPClient != nil {
			c.HTTPClient = o.HTTPClient
		}
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

// newHTTPClient keeps more idle connections to the one host than the SDK's ten,
// and gives up on an answer after a time that DynamoDB never takes.
func newHTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(5 * time.Second).WithTransportOptions(tuneTransport)
}

// Table gives one of store.TableNames. The operations on any other name fail
// with store.ErrInvalid.
func (s *Store) Table(name store.TableName) store.Table {
	if t := s.tables[name]; t != nil {
		return t
	}
	return &table{s: s, name: name}
}

// Close does nothing: the connections belong to the HTTP client.
func (s *Store) Close() error { return nil }
