package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/audit"
	"gateway/shared/blob"
	"gateway/shared/egress"
	"gateway/shared/identity"
	"gateway/shared/identity/signing"
	"gateway/shared/ledger"
	"gateway/shared/notice"
	"gateway/shared/pricing"
	"gateway/shared/pricing/published"
	"gateway/shared/queue"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/signin"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Backends are the stores of one installation.
type Backends struct {
	Store store.Store
	// Embedded means that this process is the store's only writer.
	Embedded bool
	Bucket   blob.Bucket
	Audit    queue.Queue // audit records on their way to the audit table
	Usage    queue.Queue // usage events; nil where a journal takes them
	Journal  usage.Sink  // the journal
	// RunQueue takes the steps of batches that the gateway runs itself; nil: it runs none.
	RunQueue queue.Queue
	// Exports takes the steps of exports of logs; nil: none can be started.
	Exports queue.Queue
	Sealer  seal.Sealer
}

// Settings are what differs between installations.
type Settings struct {
	Egress egress.Policy
	// BlockInline rejects inline configuration in every organization.
	BlockInline  bool
	Ledger       ledger.Hooks
	StandardHTTP bool             // calls go out through net/http; see EnvHTTP
	Retention    usage.Retention  // retention of usage; unlimited when zero
	Now          func() time.Time // nil: time.Now
	Mailer       notice.Mailer    // nil: no mail is sent
	PricesURL    string           // where a sheet of prices is published, see pricing.PriceSheet; "": nowhere
	FetchPrices  bool             // whether this process fetches it beside its requests
	PublicURL    string           // base URL that links in mails begin with; "": where the request went
	SigningKey   string           // the value of signing.Env; "": the keys are those of the tables
	Stopping     <-chan struct{}  // closed when responses that last have to end; nil: never
	// LookUpTXT queries the DNS; nil: the resolver of the machine.
	LookUpTXT func(ctx context.Context, name string) ([]string, error)
}

// Core is what every process of an installation has in common.
type Core struct {
	Backends
	Settings
	Resources *resource.Resources
	Loader    *resource.Loader
	Auth      *identity.Authenticator
	Ledger    *ledger.Ledger
	Transport http.RoundTripper // the guarded way out
	Signing   *signing.Keys
	// Prices updates the price list; nil: the built-in list is used.
	Prices *published.Prices
	// Records receives audit records that belong to no change; nil: they are dropped.
	Records Recorder
	// Renewal renews sessions at identity providers, in the process of the family auth; nil:
	// another process does.
	Renewal *signin.Renewal
	// Administration serves the administration in this process; nil before it is made, and in
	// processes without it.
	Administration http.Handler
	// AllowDuplicates lets equal calls of the administration create a resource each, also within a
	// minute. Only tests set it.
	AllowDuplicates bool
	// TrustedTransport also reaches the trusted hosts. It is for custom hosts alone and has separate
	// connections.
	TrustedTransport http.RoundTripper
}

// New assembles the core.
func New(b Backends, s Settings) *Core {
	if s.Now == nil {
		s.Now = time.Now
	}
	opts := []resource.Option{resource.Clock(s.Now)}
	if b.Embedded {
		opts = append(opts, resource.Embedded())
	}
	r := resource.New(b.Store, opts...)
	r.BeforeCommit(audit.StageStates)
	l := resource.NewLoader(r)
	c := &Core{
		Backends: b, Settings: s, Resources: r, Loader: l,
		Auth:             identity.NewAuthenticator(l, s.Now),
		Ledger:           ledger.New(b.Store, s.Now, s.Ledger),
		Transport:        egress.New(s.Egress.WithoutTrusted(), egress.Options{Standard: s.StandardHTTP}),
		TrustedTransport: egress.New(s.Egress, egress.Options{Standard: s.StandardHTTP}),
		Signing:          signing.New(signing.Options{Table: b.Store.Table(store.Usage), Sealer: b.Sealer, Now: s.Now, ConfiguredKey: s.SigningKey}),
	}
	c.Auth.Tokens = c.tokens()
	if s.PricesURL != "" {
		c.Prices = published.Open(published.Options{URL: s.PricesURL, Transport: c.Transport, Table: b.Store.Table(store.Control), Base: pricing.Default(), Now: s.Now, Fetch: s.FetchPrices})
	}
	return c
}

// CheckPricesURL validates the address of a sheet of prices; "" disables it.
func CheckPricesURL(p egress.Policy, address string) error {
	if address == "" {
		return nil
	}
	if _, err := p.WithoutTrusted().CheckURL(address, "the address of prices"); err != nil {
		return err
	}
	return nil
}

// Book is the price list. Its Current gives the newest one.
func (c *Core) Book() *pricing.Book {
	if c.Prices == nil {
		return pricing.Default()
	}
	return c.Prices.Book()
}

// Events takes usage events that belong to no request; nil: nothing takes them.
func (c *Core) Events() usage.Sink {
	switch {
	case c.Journal != nil:
		return c.Journal
	case c.Usage != nil:
		return &usage.QueueSink{Queue: c.Usage, Bucket: c.Bucket}
	}
	return nil
}

// CloseIdleConnections closes the outbound connections that no request uses.
func (c *Core) CloseIdleConnections() {
	egress.CloseIdle(c.Transport)
	egress.CloseIdle(c.TrustedTransport)
}

// EnvHTTP is "standard" where net/http is to serve and to call, instead of this project's
// own engines.
const EnvHTTP = "GATEWAY_HTTP"

// StandardHTTP reads EnvHTTP. Nothing else does: its value is passed on in Settings and in
// the host's options.
func StandardHTTP() (bool, error) {
	switch os.Getenv(EnvHTTP) {
	case "":
		return false, nil
	case "standard":
		return true, nil
	}
	return false, fmt.Errorf("%s must be standard, or not be set", EnvHTTP)
}

// Recorder takes audit records that belong to no change.
type Recorder interface {
	Record(ctx context.Context, org string, e audit.Entry) error
}

// LedgerHooks handle what the ledger reports. Unsettled entries become records; budgets that
// cross a threshold become audit records and notices in st; failures become log lines. recorder
// may be called later.
func LedgerHooks(sink usage.Sink, recorder func() Recorder, st store.Store) ledger.Hooks {
	return ledger.Hooks{
		Unconfirmed: func(ctx context.Context, u ledger.Unconfirmed) error { return sink.Emit(ctx, unconfirmed(u)) },
		Alert: func(ctx context.Context, a ledger.Alert) error {
			if r := recorder(); r != nil {
				if err := r.Record(ctx, a.Scope.Org, crossing(a)); err != nil {
					return err
				}
			}
			// Last, because a failed alert is repeated entirely and users must get one notice.
			return notice.Raise(ctx, st, warning(a), time.Now())
		},
		FailedOpen: func(_ context.Context, s *ledger.Subject, err error) {
			slog.Warn("a rate limit was not enforced", "kind", s.Kind, "id", s.ID, "error", err.Error())
		},
		Failed: func(_ context.Context, what string, err error) {
			slog.Error("ledger", "what", what, "error", err.Error())
		},
	}
}

// unconfirmed is the record of a request that died before it was settled. It has the
// request's id and time of arrival, so that a late record counts as the same one. Where the
// budgets were charged again for the same request, each further charge has a record of its
// own, at the same time, with an id that depends on nothing but the request and the turn: a
// repeated report gives the same record.
func unconfirmed(u ledger.Unconfirmed) *usage.Record {
	id, start := u.RequestID, u.Reserved
	if arrived, err := ulid.ParseStrict(id); err == nil {
		start = arrived.Timestamp().UTC()
		if u.Turn > 0 {
			further := sha256.Sum256([]byte(id + "#" + strconv.Itoa(u.Turn)))
			copy(arrived[6:], further[:])
			id = arrived.String()
		}
	} else if u.Turn > 0 {
		id += "#" + strconv.Itoa(u.Turn)
	}
	r := &usage.Record{
		ID: id, Start: start, Org: u.Scope.Org, Workspace: u.Scope.Workspace, Endpoint: "unconfirmed",
		Unconfirmed: true, Priced: true, Cost: u.Cost, CacheStatus: "DISABLED", ErrorCode: "unconfirmed",
		ErrorMessage: "the request ended without settling; its reservation was charged",
	}
	if u.Kind == ledger.Key {
		r.KeyID = u.ID
	}
	r.Usage.Set(pricing.Output, u.Tokens)
	r.Usage.Set(pricing.Requests, u.Requests)
	r.Usage.Estimated = true
	return r
}

// crossing is the audit record of a budget that passed its threshold or its end.
func crossing(a ledger.Alert) audit.Entry {
	event := "threshold"
	if a.Exhausted {
		event = "exhausted"
	}
	return audit.Entry{
		ResourceType: "budgets", Action: audit.Update, ResourceID: a.ID, WorkspaceID: a.Scope.Workspace, StatusCode: 200,
		Details: map[string]string{
			"event": event, "kind": a.Kind, "value_key": a.Bucket, "type": string(a.Budget),
			"usage": string(a.Budget.Amount(a.Usage)), "threshold": string(a.Budget.Amount(a.Threshold)), "limit": string(a.Budget.Amount(a.Limit)),
			"period_end": end(a.PeriodEnd),
		},
	}
}

// warning is the notice of a crossing.
func warning(a ledger.Alert) notice.Event {
	details := crossing(a).Details
	details["id"] = a.ID
	e := notice.Event{
		Type: notice.BudgetThreshold, Org: a.Scope.Org, Workspace: a.Scope.Workspace, Data: details,
		Audience: notice.Audience{Admins: true, Managers: true},
	}
	what := "has reached its alert threshold of " + details["threshold"]
	if a.Exhausted {
		e.Type, what = notice.BudgetExhausted, "is exhausted: the limit is "+details["limit"]
	}
	if a.Kind == ledger.Key {
		e.Audience.Key = a.ID
	}
	unit := string(a.Budget)
	if a.Budget == ledger.Cost {
		unit, details["cost_usd"] = "USD", details["usage"]
	}
	details["unit"] = unit // of usage, threshold and limit
	e.Summary = "The budget of " + strings.ReplaceAll(a.Kind, "_", " ") + " " + a.ID + " " + what + " " + unit
	return e
}

func end(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
