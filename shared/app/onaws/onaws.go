// Package onaws builds the core of an installation on AWS from environment variables:
// DynamoDB, SQS, S3 and KMS. Opening it makes no call; clients read what they need when
// they are first used. AWS_ENDPOINT_URL sends calls elsewhere than to AWS;
// AWS_ENDPOINT_URL_SQS, for example, does so for one service.
package onaws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/blob/s3"
	"gateway/shared/egress"
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
	// ExportQueue the same.
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
			b.Sealer = seal.New(kms.New(cfg, kms.Options{Key: get(EnvKey), FormerKeys: list(EnvFormerKeys)}), nil)
		default:
			errs = append(errs, fmt.Errorf("onaws: no part %d", p))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return app.Backends{}, err
	}
	if url := os.Getenv(EnvRunQueue); url != "" {
		b.RunQueue = sqs.New(cfg, url)
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

// Names of the variables that describe an installation.
const (
	EnvName          = "GATEWAY_NAME"                  // of the installation; "gateway"
	EnvTablePrefix   = "GATEWAY_TABLE_PREFIX"          // before the names of the tables; "gateway-"
	EnvBucket        = "GATEWAY_BUCKET"                // segments and large bodies
	EnvAuditQueue    = "GATEWAY_AUDIT_QUEUE_URL"       // audit records
	EnvUsageQueue    = "GATEWAY_USAGE_QUEUE_URL"       // usage events
	EnvRunQueue      = "GATEWAY_BATCH_QUEUE_URL"       // steps of batches that the gateway runs; none: it runs none
	EnvExportQueue   = "GATEWAY_EXPORT_QUEUE_URL"      // steps of exports of logs; none: none can be started
	EnvKey           = "GATEWAY_KMS_KEY_ID"            // wraps the data keys
	EnvFormerKeys    = "GATEWAY_KMS_FORMER_KEY_IDS"    // unwrap only; comma list
	EnvOriginSecrets = "GATEWAY_ORIGIN_SECRETS"        // of the edge at deployment, at most two; comma list, or "off"
	EnvEgress        = "GATEWAY_EGRESS_ALLOW"          // reachable besides public addresses; none
	EnvTrustedHosts  = "TRUSTED_CUSTOM_HOSTS"          // custom hosts that may be called by plain HTTP
	EnvBlockInline   = "BLOCK_INLINE_CONFIG"           // "true": no inline configuration
	EnvMailFrom      = "GATEWAY_MAIL_FROM"             // sender of mails; none: no mail is sent
	EnvMailIdentity  = "GATEWAY_MAIL_IDENTITY"         // ARN of the sender's identity in SES
	EnvPublicURL     = "GATEWAY_PUBLIC_URL"            // base URL that links in mails begin with
	EnvPricesURL     = "GATEWAY_PRICES_URL"            // where a sheet of prices is published; none
	EnvBodyDays      = "GATEWAY_BODY_RETENTION_DAYS"   // retention of bodies in days; default 90, 0: unlimited
	EnvRecordDays    = "GATEWAY_RECORD_RETENTION_DAYS" // retention of records in days; default 365, 0: unlimited
)

// defaultPrefix is that of the tables.
const defaultPrefix = "gateway-"

const defaultName = "gateway"

// need gives a variable's value; its absence is an error.
func need(name string) (string, error) {
	v := os.Getenv(name)
	if v == "" {
		return "", fmt.Errorf("onaws: %s must be set", name)
	}
	return v, nil
}

// list splits a comma list; empty parts do not count.
func list(name string) []string {
	var out []string
	for _, v := range strings.Split(os.Getenv(name), ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// policy is what may be dialled. Without EnvEgress that is public addresses.
func policy() (egress.Policy, error) {
	p, err := egress.ParseAllow(os.Getenv(EnvEgress))
	if err != nil {
		return p, fmt.Errorf("%s: %w", EnvEgress, err)
	}
	if p.RootCAs, err = egress.Roots(os.Getenv(egress.EnvRoots)); err != nil {
		return p, err
	}
	trusted, set := os.LookupEnv(EnvTrustedHosts)
	if !set {
		p.TrustedHosts = egress.DefaultTrusted(true)
		return p, nil
	}
	if p.TrustedHosts, err = egress.ParseTrusted(trusted); err != nil {
		return p, fmt.Errorf("%s: %w", EnvTrustedHosts, err)
	}
	return p, nil
}

// maxSecrets is how many origin secrets may be valid at a time.
const maxSecrets = 2

// NoOriginSecrets is the value of EnvOriginSecrets for processes that callers reach
// without the edge.
const NoOriginSecrets = "off"

// OriginSecrets returns the secrets by which the edge authenticated at deployment; none if
// there is no edge. A process without this setting does not start.
func OriginSecrets() ([]string, error) {
	secrets := list(EnvOriginSecrets)
	switch {
	case len(secrets) == 0:
		return nil, fmt.Errorf("onaws: %s must be set: the secrets of the edge, or %s where there is no edge", EnvOriginSecrets, NoOriginSecrets)
	case slices.Equal(secrets, []string{NoOriginSecrets}):
		return nil, nil
	case len(secrets) > maxSecrets:
		return nil, fmt.Errorf("onaws: %s has %d values, at most %d may be valid at a time", EnvOriginSecrets, len(secrets), maxSecrets)
	}
	return secrets, nil
}
