// Package saved makes saved providers and configs ready for calls. They are shared
// between requests under one View and never changed.
package saved

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route/rotation"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Provider is a saved provider made ready for calls. It is shared between requests
// under one View and never changed.
type Provider struct {
	ID, Slug      string
	IntegrationID string
	status        string
	until         time.Time // zero: does not expire
	Provider      *provider.Provider
	inst          *provider.Instance
	Integration   *provider.Integration
	enabled       bool // the integration is open to the workspace
	OrgWide       bool // the credential is the organization's, not the workspace's
	Shared        bool // other workspaces may use it too
	Subjects      []*ledger.Subject
	CustomHost    string
	CustomHeaders map[string]string
	Prices        map[string]*pricing.Custom // own prices by model
	Adjust        *pricing.Adjustments
	urls          sync.Map // address -> *url.URL
	cachedURLs    atomic.Int64

	record resource.Record // of the integration, with its sealed secrets
	moves  bool            // a secret manager contains the address, so that none is cached
	opened atomic.Pointer[OpenCredential]
}

// OpenCredential is a credential ready for use. It is shared and never changed.
type OpenCredential struct {
	*provider.Credential                              // the first one, if there are several
	Credentials          []rotation.Entry             // if there are several; nil otherwise
	ModelHeaders         map[string]map[string]string // custom headers of models with a host of their own, by slug
	Users                *Users                       // of the credential
	until                time.Time                    // zero: as long as the provider
}

// Users remembers who else uses a credential. It is safe for concurrent use.
type Users struct{ Current atomic.Pointer[Uses] }

// Uses are the most recently read workspaces that use a credential.
type Uses struct {
	Prints  []string // fingerprints of the credentials
	Places  []string // the partitions of its objects
	Shared  bool     // another workspace uses it
	LastUse time.Time
}

// Deps are what credentials are opened with.
type Deps struct {
	Sealer  seal.Sealer
	Secrets *provider.Secrets
	View    *resource.View
	Scope   store.Scope // of the request
	Now     time.Time
	// Rehearsing: no secret manager is called; placeholder values replace its secrets.
	Rehearsing bool
}

// Load finds a saved provider by its slug, for a request that arrived at the time now.
func Load(ctx context.Context, v *resource.View, sc store.Scope, slug string, now time.Time) (*Provider, error) {
	s, ok, err := resource.Load(ctx, v, sc, provider.KindProvider, slug, func(rec resource.Record) (*Provider, error) {
		return decode(ctx, v, sc, rec)
	})
	if err != nil {
		return nil, err
	}
	if !ok || s.status == provider.StatusArchived {
		return nil, fault.Newf(fault.UnknownProvider, "provider", "There is no provider @%s in this workspace; GET /v1/providers lists the providers", fault.Clip(slug, 300))
	}
	if !s.enabled {
		return nil, fault.Newf(fault.NotAllowed, "provider", "The integration of provider @%s is not enabled for this workspace", slug)
	}
	if s.status == provider.StatusExpired || (!s.until.IsZero() && !now.Before(s.until)) {
		return nil, fault.Newf(fault.NotAllowed, "provider", "The provider @%s has expired", slug)
	}
	return s, nil
}

func decode(ctx context.Context, v *resource.View, sc store.Scope, rec resource.Record) (*Provider, error) {
	inst, err := provider.DecodeInstance(rec)
	if err != nil {
		return nil, err
	}
	s := &Provider{ID: rec.ID, Slug: rec.Slug, status: rec.Status, inst: inst, IntegrationID: inst.IntegrationID}
	if inst.ExpiresAt != nil {
		s.until = *inst.ExpiresAt
	}
	if sub := provider.InstanceSubject(sc, rec.ID, rec.Slug, rec.Rev, inst); sub != nil {
		s.Subjects = append(s.Subjects, sub)
	}
	return s, s.bind(ctx, v, sc)
}

// OfIntegration returns a provider without a slug for an integration in its own scope, to test its
// credentials.
func OfIntegration(ctx context.Context, v *resource.View, rec resource.Record) (*Provider, error) {
	s := &Provider{IntegrationID: rec.ID, inst: &provider.Instance{IntegrationID: rec.ID, IntegrationOrg: rec.Scope.Workspace == ""}}
	err := s.bind(ctx, v, rec.Scope)
	if err == nil && s.Integration == nil {
		err = fault.New(fault.NotFound, "", "This integration does not exist")
	}
	return s, err
}

// bind reads the integration of a provider in a scope. A provider without one is not enabled.
func (s *Provider) bind(ctx context.Context, v *resource.View, sc store.Scope) error {
	inst := s.inst
	type found struct {
		rec resource.Record
		in  *provider.Integration
	}
	f, ok, err := resource.Load(ctx, v, inst.IntegrationScope(sc), provider.KindIntegration, inst.IntegrationID, func(r resource.Record) (found, error) {
		in, err := provider.DecodeIntegration(r)
		return found{r, in}, err
	})
	if err != nil {
		return err
	}
	if !ok || f.rec.Archived() {
		return nil
	}
	p, ok := provider.ByID(f.in.AIProviderID)
	if !ok {
		return fmt.Errorf("relay: integration %s names the provider %q, which is not in the catalog", f.rec.ID, f.in.AIProviderID)
	}
	s.Provider, s.Integration = p, f.in
	s.record, s.moves = f.rec, f.in.MapsAddress()
	if inst.IntegrationOrg {
		access := f.in.Access(sc.Workspace)
		s.enabled = access.Enabled
		s.OrgWide, s.Shared = true, f.in.SharedBeyond(sc.Workspace)
		if sub := provider.AccessSubject(sc, f.rec.ID, f.rec.Slug, f.rec.Rev, access); sub != nil {
			s.Subjects = append(s.Subjects, sub)
		}
	} else {
		s.enabled = true
	}
	s.CustomHost, _ = f.in.Configurations["custom_host"].(string)
	if hs, ok := f.in.Configurations["custom_headers"].(map[string]any); ok {
		s.CustomHeaders = make(map[string]string, len(hs))
		for k, val := range hs {
			s.CustomHeaders[k], _ = val.(string)
		}
	}
	return s.readPrices()
}

// readPrices parses the integration's own prices once.
func (s *Provider) readPrices() error {
	var bad []fault.Detail
	if len(s.Integration.PricingAdjustments) > 0 {
		s.Adjust, bad = pricing.ParseAdjustments(s.Integration.PricingAdjustments, "pricing_adjustments")
	}
	s.Prices = make(map[string]*pricing.Custom)
	for _, m := range s.Integration.Models {
		if len(m.Pricing) == 0 {
			continue
		}
		own, more := pricing.ParseCustom(m.Pricing, "pricing_config")
		s.Prices[m.Slug], bad = own, append(bad, more...)
	}
	if len(bad) > 0 {
		return fmt.Errorf("relay: prices of integration %s: %s %s", s.IntegrationID, bad[0].Field, bad[0].Message)
	}
	return nil
}

// Cached gives a credential that was opened before; nil: it must be opened now.
func (s *Provider) Cached(now time.Time) *OpenCredential {
	if o := s.opened.Load(); o != nil && (o.until.IsZero() || now.Before(o.until)) {
		return o
	}
	return nil
}

// Open gives the provider's credential. It is unsealed once, and filled by secret managers
// again whenever their values are due.
func (s *Provider) Open(ctx context.Context, m *Deps) (*OpenCredential, error) {
	was := s.opened.Load()
	if ready := s.Cached(m.Now); ready != nil {
		return ready, nil
	}
	var values map[string]string
	now := &OpenCredential{}
	if mappings := s.Integration.SecretMappings; len(mappings) > 0 && m.Rehearsing {
		values = madeUp(mappings)
	} else if len(mappings) > 0 {
		var err error
		if values, now.until, err = m.Secrets.Values(ctx, m.View, m.Scope, mappings); err != nil {
			return nil, err
		}
	}
	secrets, err := s.record.OpenSecrets(ctx, m.Sealer)
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("relay: credential of provider %s: %w", s.ID, err))
	}
	if now.ModelHeaders, err = s.Integration.OpenModelHeaders(secrets); err != nil {
		return nil, fault.Unavailable(fmt.Errorf("relay: credential of provider %s: %w", s.ID, err))
	}
	fields := make(map[string]any, len(s.Integration.Configurations)+len(secrets))
	for k, v := range s.Integration.Configurations {
		fields[k] = v
	}
	for k, v := range secrets {
		if k != provider.SecretKey {
			fields[k] = string(v)
		}
	}
	key := string(secrets[provider.SecretKey])
	provider.ReplaceMapped(values, &key, fields)
	cred := provider.CredentialFromConfig(s.Provider, key, fields)
	if now.Credentials = rotating(cred, s.Integration.Credentials, secrets); len(now.Credentials) > 0 {
		cred = *now.Credentials[0].Credential
	}
	now.Credential, now.Users = &cred, new(Users)
	if was != nil && reflect.DeepEqual(was.Credential, now.Credential) {
		now.Credential, now.Users = was.Credential, was.Users
	}
	if !m.Rehearsing || len(values) == 0 {
		s.opened.Store(now)
	}
	return now, nil
}

// rotating returns a credential for each key of the list.
func rotating(of provider.Credential, list []provider.StoredCredential, secrets map[string][]byte) []rotation.Entry {
	if len(list) == 0 {
		return nil
	}
	out := make([]rotation.Entry, len(list))
	for i := range list {
		cred := of
		cred.Key = string(secrets[list[i].Secret()])
		out[i] = rotation.Entry{ID: list[i].ID, Label: list[i].Label, Weight: list[i].Weight, Credential: &cred}
	}
	return out
}

// IntegrationScope returns the scope of the provider's integration.
func (s *Provider) IntegrationScope() store.Scope { return s.record.Scope }

// madeUp are values for a request that is not sent.
func madeUp(mappings []provider.SecretMapping) map[string]string {
	values := make(map[string]string, len(mappings))
	for i := range mappings {
		values[mappings[i].TargetField] = "mapped"
	}
	return values
}

// MarkRejected reports that the provider rejected the credential. A secret manager may contain a
// newer one, which is then fetched.
func (s *Provider) MarkRejected(ctx context.Context, m *Deps) {
	if len(s.Integration.SecretMappings) == 0 {
		return
	}
	m.Secrets.MarkRejected(ctx, m.View, m.Scope, s.Integration.SecretMappings)
	s.opened.Store(nil)
}

// Allows checks a model against the integration's list.
func (s *Provider) Allows(model string) error {
	if s.Integration.Allows(model) {
		return nil
	}
	return fault.Newf(fault.ModelNotAllowed, "model", "The model %q is not enabled for provider @%s", fault.Clip(model, 300), s.Slug)
}

// Model finds what an integration states about one of its models; nil if nothing.
func (s *Provider) Model(name string) *provider.IntegrationModel {
	for i := range s.Integration.Models {
		if s.Integration.Models[i].Slug == name {
			return &s.Integration.Models[i]
		}
	}
	return nil
}

// address names an upstream URL of a saved provider, so that it is parsed once.
type address struct {
	op     provider.Operation
	model  string
	stream bool
}

// maxURLs limits the cached addresses, since models come from callers.
const maxURLs = 1000

// KnownURL is the address of an operation that was parsed before; nil: none was.
func (s *Provider) KnownURL(op provider.Operation, model string, stream bool) *url.URL {
	if s.moves {
		return nil
	}
	if u, ok := s.urls.Load(address{op, model, stream}); ok {
		return u.(*url.URL)
	}
	return nil
}

// CacheURL caches the parsed address of an operation. It must not be changed.
func (s *Provider) CacheURL(op provider.Operation, model string, stream bool, u *url.URL) {
	if !s.moves && s.cachedURLs.Add(1) <= maxURLs {
		s.urls.Store(address{op, model, stream}, u)
	}
}

// Prices are what models of a provider cost. The integration's own price comes before the
// organization's, and that before the list's. The multipliers are those of the integration,
// or else of the organization.
type Prices struct {
	List  *pricing.Book
	By    *pricing.Overrides // of the organization; nil: none
	Of    string             // the provider, such as openai
	Saved *Provider          // nil: none; its integration may have prices
}

// Find finds the price of a model. name is the model that it is charged as, by which
// it may be looked for elsewhere where ok is false.
func (s Prices) Find(model string, o pricing.Options) (name string, p pricing.Price, ok bool) {
	if s.Saved != nil {
		if own, ok := s.Saved.Prices[model]; ok && own.Applies(o) {
			return model, s.By.Adjust(own.Price(o), s.Saved.Adjust), true
		}
		if m := s.Saved.Model(model); m != nil && m.BaseModelSlug != "" {
			model = m.BaseModelSlug
		}
	}
	p, ok = s.ListPrice(model, o)
	return model, p, ok
}

// ListPrice returns the price of a model for which the integration sets none.
func (s Prices) ListPrice(model string, o pricing.Options) (p pricing.Price, ok bool) {
	if p, ok = s.By.Price(s.List, s.Of, model, o); !ok {
		return p, false
	}
	var adjust *pricing.Adjustments
	if s.Saved != nil {
		adjust = s.Saved.Adjust
	}
	return s.By.Adjust(p, adjust), true
}
