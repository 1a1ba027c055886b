package dynamo

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
