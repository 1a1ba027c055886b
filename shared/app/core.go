package app

import (
	"context"
	"net/http"
	"time"

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
	// Embedded says that this process is the store's only writer.
	Embedded bool
	Bucket   blob.Bucket
	Audit    queue.Queue // audit records on their way to the audit table
	Usage    queue.Queue // usage events; nil where a journal takes them
	Journal  usage.Sink  // the journal
	// Runs takes the steps of batches that the gateway runs itself; nil: it runs none.
	Runs queue.Queue
	// Exports takes the steps of exports of logs; nil: none can be started.
	Exports queue.Queue
	Sealer  seal.Sealer
}

// Settings are what differs between installations.
type Settings struct {
	Egress egress.Policy
	// BlockInline refuses inline configuration in every organisation.
	BlockInline  bool
	Ledger       ledger.Hooks
	StandardHTTP bool             // calls go out through net/http; see EnvHTTP
	Retention    usage.Retention  // retention of usage; unlimited when zero
	Now          func() time.Time // nil: time.Now
	Mailer       notice.Mailer    // nil: no mail is sent
	PricesURL    string           // where a sheet of prices is published, see pricing.Sheet; "": nowhere
	FetchPrices  bool             // whether this process fetches it beside its requests
	PublicURL    string           // base URL that links in mails begin with; "": where the request went
	SigningKey   string           // the value of signing.Env; "": the keys are those of the tables
	Stopping     <-chan struct{}  // closed when answers that last have to end; nil: never
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
	// KeepTwins lets equal calls of the administration create a resource each, also within a
	// minute. Only tests set it.
	KeepTwins bool
	// Trusting also reaches the trusted hosts. It is for custom hosts alone and has separate
	// connections.
	Trusting http.RoundTripper
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
	r.BeforeCommit(audit.Follow)
	l := resource.NewLoader(r)
	c := &Core{
		Backends: b, Settings: s, Resources: r, Loader: l,
		Auth:      identity.NewAuthenticator(l, s.Now),
		Ledger:    ledger.New(b.Store, s.Now, s.Ledger),
		Transport: egress.New(s.Egress.WithoutTrusted(), egress.Options{Standard: s.StandardHTTP}),
		Trusting:  egress.New(s.Egress, egress.Options{Standard: s.StandardHTTP}),
		Signing:   signing.New(signing.Options{Table: b.Store.Table(store.Usage), Sealer: b.Sealer, Now: s.Now, Given: s.SigningKey}),
	}
	c.Auth.Tokens = c.tokens()
	if s.PricesURL != "" {
		c.Prices = published.Open(published.Options{URL: s.PricesURL, Via: c.Transport, Table: b.Store.Table(store.Control), Base: pricing.Default(), Now: s.Now, Fetch: s.FetchPrices})
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
	egress.CloseIdle(c.Trusting)
}
