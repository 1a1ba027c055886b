// Package reference reads secrets from external managers: AWS Secrets Manager, Azure Key Vault
// and HashiCorp Vault. A Reference states where a secret is and how its manager is called. A
// Resolver calls the manager when a request needs the value, and caches it for a short time.
//
// The manager's response determines what a failure means. An error response (no such secret, no
// permission to read it) ends the use of a cached value immediately. If the manager cannot be
// reached, the cached value may be used until MaxStale.
//
// Do not add the purpose of a secret, or which identity the gateway lends (see Identities).
package reference

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"gateway/shared/egress"
	"gateway/shared/fault"
)

// Kind of the records of secret references, which belong to the organization.
const Kind = "SECRET_REFERENCE"

// The managers that a reference may name.
const (
	AWS   = "aws_sm"
	Azure = "azure_kv"
	Vault = "hashicorp_vault"
)

// Reference is the stored form of a secret reference: the body of its record. The secret
// parts of Auth are sealed beside it, each under its own name.
type Reference struct {
	Description string            `json:"description,omitempty" max:"1024"`
	ManagerType string            `json:"manager_type" enum:"aws_sm,azure_kv,hashicorp_vault"`
	Auth        map[string]string `json:"auth_config,omitempty"` // without secrets
	Masked      map[string]string `json:"masked,omitempty"`      // of the sealed secrets
	SecretPath  string            `json:"secret_path" min:"1" max:"1024"`
	SecretKey   string            `json:"secret_key,omitempty" max:"255"` // "": the entire secret
	AllowAll    bool              `json:"allow_all_workspaces"`
	Allowed     []string          `json:"allowed_workspaces,omitempty"` // ids, if not all workspaces are allowed
}

// Decode reads the stored form.
func Decode(body []byte) (*Reference, error) {
	var r Reference
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("reference: stored form: %w", err)
	}
	return &r, nil
}

// OpenTo reports whether a workspace may use the reference.
func (r *Reference) OpenTo(workspace string) bool {
	return r.AllowAll || slices.Contains(r.Allowed, workspace)
}

// How long values are used.
const (
	MaxAge   = 5 * time.Minute // used without asking again
	MaxStale = 24 * time.Hour  // used while the manager cannot be reached

	again       = 15 * time.Second // between tries while a value is stale
	notAgain    = time.Second      // after a failure when there is no value
	timeout     = 10 * time.Second // for one resolution
	patience    = time.Second      // for a request that could use a stale value
	maxCached   = 4096             // cached values
	maxResponse = 512 << 10        // bytes of a manager's answer
	doubtsApart = 30 * time.Second
)

// Identities gives the proofs that the managers of clouds demand, by the fields of an
// auth_config. Their errors are faults that reveal nothing of the credential; those with a
// status of 500 and more may pass.
type Identities interface {
	// SignAWS signs a request for a service of AWS.
	SignAWS(ctx context.Context, auth map[string]string, req *http.Request, body []byte, service, region string) error
	// AzureToken gives an access token for a resource of Azure, such as
	// https://vault.azure.net.
	AzureToken(ctx context.Context, auth map[string]string, resource string) (string, error)
}

// Source is a stored reference, with its opened sealed part.
type Source struct {
	Org, ID string
	Name    string // the name for people
	Print   [sha256.Size]byte
	*Reference
	Open func(ctx context.Context) (map[string][]byte, error)
}

// NewSource makes a Source from the stored body and sealed part.
func NewSource(org, id, name string, body, sealed []byte, open func(ctx context.Context) (map[string][]byte, error)) (*Source, error) {
	r, err := Decode(body)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d:", len(body))
	h.Write(body)
	h.Write(sealed)
	s := &Source{Org: org, ID: id, Name: name, Reference: r, Open: open}
	h.Sum(s.Print[:0])
	return s, nil
}

// Resolver gives the values of references. It is safe for concurrent use. Callers who need
// the same value at the same time share one call.
type Resolver struct {
	transport  http.RoundTripper // the guarded way out
	identities Identities
	now        func() time.Time
	host       host

	mu     sync.Mutex
	cached map[place]*entry
	flight map[place]*call
	tokens map[[sha256.Size]byte]*vaultToken
}

type place struct{ org, id string }

// entry is the cached state of a reference.
type entry struct {
	print   [sha256.Size]byte
	value   *Value // nil: there is only failed
	failed  error
	fetched time.Time
	next    time.Time // when the manager is called again
	until   time.Time // how long the value may be used
}

// call is a resolution in progress.
type call struct {
	print [sha256.Size]byte
	done  chan struct{}
	value *Value
	until time.Time
	err   error
}

// New returns a Resolver that calls managers through transport.
func New(transport http.RoundTripper, identities Identities, now func() time.Time) *Resolver {
	return &Resolver{
		transport: transport, identities: identities, now: now, host: environment(),
		cached: map[place]*entry{}, flight: map[place]*call{}, tokens: map[[sha256.Size]byte]*vaultToken{},
	}
}

// Value gives the secret of a reference, and until when it may be used without asking
// again. The error is a fault with a status of 500 and more that names the reference and
// reveals nothing of the secret.
func (r *Resolver) Value(ctx context.Context, s *Source) (*Value, time.Time, error) {
	at, now := place{s.Org, s.ID}, r.now()
	r.mu.Lock()
	e := r.cached[at]
	if e != nil && e.print != s.Print {
		e = nil
	}
	if e != nil && now.Before(e.next) && e.next.Sub(now) <= MaxAge {
		r.mu.Unlock()
		return e.value, e.next, e.failed
	}
	c := r.flight[at]
	if c == nil || c.print != s.Print {
		c = &call{print: s.Print, done: make(chan struct{})}
		r.flight[at] = c
		go r.run(context.WithoutCancel(ctx), at, s, c)
	}
	r.mu.Unlock()
	var late <-chan time.Time
	if e != nil && e.value != nil && now.Before(e.until) {
		t := time.NewTimer(patience)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-c.done:
		return c.value, c.until, c.err
	case <-late:
		return e.value, now, nil
	case <-ctx.Done():
		return nil, now, fault.New(fault.RequestTimeout, "", "The request ended during a call to a secret manager")
	}
}

// MarkRejected makes the next use call the manager early, because the receiver of the secret rejected
// it: it may have been replaced.
func (r *Resolver) MarkRejected(s *Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if e := r.cached[place{s.Org, s.ID}]; e != nil && e.print == s.Print && now.Sub(e.fetched) >= doubtsApart && e.next.After(now) {
		next := *e
		next.next = now
		r.cached[place{s.Org, s.ID}] = &next
	}
}

// run calls the manager and caches its response.
func (r *Resolver) run(ctx context.Context, at place, s *Source, c *call) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	value, err := r.fetch(ctx, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(c.done)
	now := r.now()
	if r.flight[at] == c {
		delete(r.flight, at)
	}
	e := &entry{print: s.Print, value: value, fetched: now, next: now.Add(MaxAge), until: now.Add(MaxStale)}
	if err != nil {
		e = r.failed(at, s, err, now)
	}
	if old := r.cached[at]; old == nil || old.print == s.Print || r.flight[at] == nil {
		r.cache(at, e)
	}
	c.value, c.until, c.err = e.value, e.next, e.failed
}

// failed returns the entry after a failure: a value that may still be used, or the failure.
func (r *Resolver) failed(at place, s *Source, err error, now time.Time) *entry {
	if old := r.cached[at]; old != nil && old.print == s.Print && old.value != nil && now.Before(old.until) && passes(err) {
		stale := *old
		stale.next = now.Add(again)
		return &stale
	}
	return &entry{print: s.Print, failed: named(s, err), fetched: now, next: now.Add(notAgain)}
}

// cache remembers an entry; if there are too many, any one is removed.
func (r *Resolver) cache(at place, e *entry) {
	if _, known := r.cached[at]; !known && len(r.cached) >= maxCached {
		for other := range r.cached {
			delete(r.cached, other)
			break
		}
	}
	r.cached[at] = e
}

func (r *Resolver) fetch(ctx context.Context, s *Source) (*Value, error) {
	auth := make(map[string]string, len(s.Auth)+1)
	for k, v := range s.Auth {
		auth[k] = v
	}
	opened, err := s.Open(ctx)
	if err != nil {
		return nil, &failure{why: "has a sealed credential that cannot be opened now", cause: err}
	}
	for k, v := range opened {
		auth[k] = string(v)
	}
	switch s.ManagerType {
	case AWS:
		return r.fromAWS(ctx, auth, s.SecretPath)
	case Azure:
		return r.fromAzure(ctx, auth, s.SecretPath)
	case Vault:
		return r.fromVault(ctx, auth, s.SecretPath)
	}
	return nil, rejected("has an unknown type of secret manager")
}

// failure is the reason why there is no value. final: the manager, or the stored reference,
// causes it; otherwise it may pass.
type failure struct {
	why   string // continues the sentence after the reference's name
	final bool
	cause error
}

func (f *failure) Error() string { return f.why }
func (f *failure) Unwrap() error { return f.cause }

func rejected(format string, args ...any) error {
	return &failure{why: fmt.Sprintf(format, args...), final: true}
}

func passing(cause error, format string, args ...any) error {
	return &failure{why: fmt.Sprintf(format, args...), cause: cause}
}

func passes(err error) bool {
	var f *failure
	return errors.As(err, &f) && !f.final
}

// Named is the fault for a failed reading of the source's value.
func (s *Source) Named(err error) error { return named(s, err) }

func named(s *Source, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{why: "cannot be resolved", cause: err}
	}
	code := fault.ProviderUnreachable
	if f.final {
		code = fault.ProviderError
	}
	cause := f.cause
	if cause == nil {
		cause = errors.New("reference: " + f.why)
	}
	name := s.Name
	if name == "" {
		name = s.ID
	}
	return fault.Newf(code, "secret_mappings", "The secret reference %s %s", name, f.why).WithCause(cause)
}

// call sends a request to a manager and reads its response.
func (r *Resolver) call(req *http.Request, who string) (int, []byte, error) {
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		if egress.IsBlocked(err) {
			return 0, nil, rejected("has an address that this gateway may not call")
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return 0, nil, passing(err, "cannot be read: %s did not respond in time", who)
		}
		return 0, nil, passing(err, "cannot be read: %s cannot be reached", who)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return 0, nil, passing(err, "cannot be read: the response of %s was truncated", who)
	}
	if len(body) > maxResponse {
		return 0, nil, rejected("cannot be read: the response has more than %d bytes", maxResponse)
	}
	return resp.StatusCode, body, nil
}

// proofFailed is the failure to get the proof of the caller's identity.
func proofFailed(err error) error {
	f := fault.From(err)
	if f.Status() >= 500 || f.Status() == http.StatusTooManyRequests {
		return passing(err, "cannot be read: %s", f.Message)
	}
	return rejected("cannot be read: %s", f.Message)
}

// word returns a manager's error code if it is a short word.
func word(code string) string {
	for i := range len(code) {
		c := code[i]
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if c < '0' || c > '9' {
				return "an error"
			}
		}
	}
	if code == "" || len(code) > 64 {
		return "an error"
	}
	return code
}
