package onaws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"

	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/blob/s3"
	"gateway/shared/identity/signing"
	"gateway/shared/queue/sqs"
	"gateway/shared/seal"
	"gateway/shared/seal/kms"
	"gateway/shared/store/dynamo"
	"gateway/shared/usage"
)

// Part is a backend besides the tables, which every process has.
type Part uint8

// The parts that a process may need. Parts that a process does not name are absent in its
// core.
const (
	Bucket Part = iota + 1
	AuditQueue
	UsageQueue
	Keys
	// RunQueue is opened wherever its variable is set. A process that names it cannot start
	// without.
	RunQueue
	// ExportQueue likewise.
	ExportQueue
)

// Installation is a core on AWS, with the parts that carry its records.
type Installation struct {
	*app.Core
	// Sink takes usage events; nil without UsageQueue.
	Sink usage.Sink
	// Sender sends audit records before a change returns; nil without AuditQueue.
	Sender *audit.Sender
}

// Open assembles the core with the named parts. It reports all missing and invalid variables
// together. A process with requests that count against budgets needs both queues, because the
// ledger reports through them.
func Open(ctx context.Context, parts ...Part) (*Installation, error) {
	b, err := Backends(ctx, parts...)
	if err != nil {
		return nil, err
	}
	p, err := policy()
	if err != nil {
		return nil, fmt.Errorf("onaws: %w", err)
	}
	in := &Installation{}
	s := app.Settings{SigningKey: os.Getenv(signing.Env), Egress: p, BlockInline: os.Getenv(EnvBlockInline) == "true"}
	// A function is frozen between its requests, so it fetches no prices: the worker of
	// scheduled tasks does.
	s.PricesURL, s.FetchPrices = os.Getenv(EnvPricesURL), os.Getenv("AWS_LAMBDA_FUNCTION_NAME") == ""
	if err := app.CheckPricesURL(p, s.PricesURL); err != nil {
		return nil, fmt.Errorf("onaws: %s: %w", EnvPricesURL, err)
	}
	if s.StandardHTTP, err = app.StandardHTTP(); err != nil {
		return nil, err
	}
	if s.Retention, err = usage.ParseRetention(os.Getenv(EnvBodyDays), os.Getenv(EnvRecordDays)); err != nil {
		return nil, fmt.Errorf("onaws: %w", err)
	}
	if b.Usage != nil {
		in.Sink = &usage.QueueSink{Queue: b.Usage, Bucket: b.Bucket}
		s.Ledger = app.LedgerHooks(in.Sink, in.recorder, b.Store)
	}
	in.Core = app.New(b, s)
	if b.Audit != nil {
		in.Sender = audit.NewSender(in.Resources, in.Audit)
		in.Records = in.Sender
	}
	return in, nil
}

// recorder takes the ledger's audit records; nil when there is none.
func (in *Installation) recorder() app.Recorder {
	if in.Sender == nil {
		return nil
	}
	return in.Sender
}

// Backends opens the tables and the parts that are named.
func Backends(ctx context.Context, parts ...Part) (b app.Backends, err error) {
	cfg, err := Config(ctx)
	if err != nil {
		return b, err
	}
	var errs []error
	get := func(name string) string {
		v, err := need(name)
		errs = append(errs, err)
		return v
	}
	for _, p := range parts {
		switch p {
		case Bucket:
			b.Bucket = s3.New(cfg, get(EnvBucket), s3Options()...)
		case AuditQueue:
			b.Audit = sqs.New(cfg, get(EnvAuditQueue))
		case UsageQueue:
			b.Usage = sqs.New(cfg, get(EnvUsageQueue))
		case RunQueue:
			get(EnvRunQueue)
		case ExportQueue:
			get(EnvExportQueue)
		case Keys:
			b.Sealer = seal.New(kms.New(cfg, kms.Options{Key: get(EnvKey), Former: list(EnvFormerKeys)}), nil)
		default:
			errs = append(errs, fmt.Errorf("onaws: no part %d", p))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return app.Backends{}, err
	}
	if url := os.Getenv(EnvRunQueue); url != "" {
		b.Runs = sqs.New(cfg, url)
	}
	if url := os.Getenv(EnvExportQueue); url != "" {
		b.Exports = sqs.New(cfg, url)
	}
	b.Store, err = Store(cfg)
	return b, err
}

// Store opens the tables.
func Store(cfg aws.Config) (*dynamo.Store, error) {
	return dynamo.New(dynamo.Options{Prefix: cmp.Or(os.Getenv(EnvTablePrefix), defaultPrefix), Config: &cfg})
}

// Name is the installation's.
func Name() string { return cmp.Or(os.Getenv(EnvName), defaultName) }

// s3Options put the bucket into the path where S3 is not AWS's own.
func s3Options() []s3.Option {
	if os.Getenv("AWS_ENDPOINT_URL") != "" || os.Getenv("AWS_ENDPOINT_URL_S3") != "" {
		return []s3.Option{s3.PathStyle()}
	}
	return nil
}
