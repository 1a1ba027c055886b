package relay

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/kept"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// saved is a saved provider made ready for calls. It is shared between requests
// under one View and never changed.
type saved struct {
	id, slug      string
	integrationID string
	status        string
	until         time.Time // zero: does not expire
	provider      *provider.Provider
	inst          *provider.Instance
	integration   *provider.Integration
	enabled       bool // the integration is open to the workspace
	orgWide       bool // the credential is the organisation's, not the workspace's
	shared        bool // other workspaces may use it too
	subjects      []*ledger.Subject
	customHost    string
	customHeaders map[string]string
	prices        map[string]*pricing.Custom // own prices by model
	adjust        *pricing.Adjustments
	urls          sync.Map // address -> *url.URL
	kept          atomic.Int64

	record     resource.Record                     // of the integration, with its sealed secrets
	credential atomic.Pointer[provider.Credential] // opened once
	users      kept.Users                          // of the credential
}

// loadSaved finds a saved provider by its slug.
func (p *plan) loadSaved(slug string) (*saved, error) {
	sc := p.who.Scope
	s, ok, err := resource.Load(p.ctx, p.view, sc, provider.KindProvider, slug, func(rec resource.Record) (*saved, error) {
		return decodeSaved(p.ctx, p.view, sc, rec)
	})
	if err != nil {
		return nil, err
	}
	if !ok || s.status == provider.StatusArchived {
		return nil, fault.Newf(fault.UnknownProvider, "provider", "There is no provider @%s in this workspace", clipText(slug))
	}
	if !s.enabled {
		return nil, fault.Newf(fault.NotAllowed, "provider", "The integration of provider @%s is not enabled for this workspace", slug)
	}
	if s.status == provider.StatusExpired || (!s.until.IsZero() && !p.start.Before(s.until)) {
		return nil, fault.Newf(fault.NotAllowed, "provider", "The provider @%s has expired", slug)
	}
	return s, nil
}

func decodeSaved(ctx context.Context, v *resource.View, sc store.Scope, rec resource.Record) (*saved, error) {
	inst, err := provider.DecodeInstance(rec)
	if err != nil {
		return nil, err
	}
	s := &saved{id: rec.ID, slug: rec.Slug, status: rec.Status, inst: inst, integrationID: inst.IntegrationID}
	if inst.ExpiresAt != nil {
		s.until = *inst.ExpiresAt
	}
	if sub := provider.InstanceSubject(sc, rec.ID, rec.Slug, rec.Rev, inst); sub != nil {
		s.subjects = append(s.subjects, sub)
	}
	type found struct {
		rec resource.Record
		in  *provider.Integration
	}
	f, ok, err := resource.Load(ctx, v, inst.IntegrationScope(sc), provider.KindIntegration, inst.IntegrationID, func(r resource.Record) (found, error) {
		in, err := provider.DecodeIntegration(r)
		return found{r, in}, err
	})
	if err != nil {
		return nil, err
	}
	if !ok || f.rec.Archived() {
		return s, nil // not enabled
	}
	p, ok := provider.ByID(f.in.AIProviderID)
	if !ok {
		return nil, fmt.Errorf("relay: integration %s names the provider %q, which is not in the catalogue", f.rec.ID, f.in.AIProviderID)
	}
	s.provider, s.integration = p, f.in
	s.record = f.rec
	if inst.IntegrationOrg {
		access := f.in.Access(sc.Workspace)
		s.enabled = access.Enabled
		s.orgWide, s.shared = true, f.in.SharedBeyond(sc.Workspace)
		if sub := provider.AccessSubject(sc, f.rec.ID, f.rec.Slug, f.rec.Rev, access); sub != nil {
			s.subjects = append(s.subjects, sub)
		}
	} else {
		s.enabled = true
	}
	s.customHost, _ = f.in.Configurations["custom_host"].(string)
	if hs, ok := f.in.Configurations["custom_headers"].(map[string]any); ok {
		s.customHeaders = make(map[string]string, len(hs))
		for k, val := range hs {
			s.customHeaders[k], _ = val.(string)
		}
	}
	return s, s.readPrices()
}

// readPrices parses the integration's own prices once.
func (s *saved) readPrices() error {
	var bad []fault.Detail
	if len(s.integration.PricingAdjustments) > 0 {
		s.adjust, bad = pricing.ParseAdjustments(s.integration.PricingAdjustments, "pricing_adjustments")
	}
	s.prices = make(map[string]*pricing.Custom)
	for _, m := range s.integration.Models {
		if len(m.Pricing) == 0 {
			continue
		}
		own, more := pricing.ParseCustom(m.Pricing, "pricing_config")
		s.prices[m.Slug], bad = own, append(bad, more...)
	}
	if len(bad) > 0 {
		return fmt.Errorf("relay: prices of integration %s: %s %s", s.integrationID, bad[0].Field, bad[0].Message)
	}
	return nil
}

// open gives the provider's credential, unsealing it the first time.
func (s *saved) open(ctx context.Context, sealer seal.Sealer) (*provider.Credential, error) {
	if cred := s.credential.Load(); cred != nil {
		return cred, nil
	}
	if len(s.integration.SecretMappings) > 0 {
		return nil, fault.Newf(fault.UnsupportedOperation, "provider", "The credential of @%s is mapped to a secret manager, which this installation is not connected to; store the credential on the integration instead", s.slug)
	}
	secrets, err := s.record.OpenSecrets(ctx, sealer)
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("relay: credential of provider %s: %w", s.id, err))
	}
	fields := make(map[string]any, len(s.integration.Configurations)+len(secrets))
	for k, v := range s.integration.Configurations {
		fields[k] = v
	}
	for k, v := range secrets {
		if k != provider.SecretKey {
			fields[k] = string(v)
		}
	}
	cred := provider.CredentialFromConfig(s.provider, string(secrets[provider.SecretKey]), fields)
	s.credential.Store(&cred)
	return &cred, nil
}

// allows checks a model against the integration's list.
func (s *saved) allows(model string) error {
	if s.integration.Allows(model) {
		return nil
	}
	return fault.Newf(fault.ModelNotAllowed, "model", "The model %q is not enabled for provider @%s", clipText(model), s.slug)
}

// model finds what an integration says of one of its models; nil if nothing.
func (s *saved) model(name string) *provider.IntegrationModel {
	for i := range s.integration.Models {
		if s.integration.Models[i].Slug == name {
			return &s.integration.Models[i]
		}
	}
	return nil
}

func trimSlash(p string) string {
	for len(p) > 0 && p[len(p)-1] == '/' {
		p = p[:len(p)-1]
	}
	return p
}

// maxURLs bounds the addresses kept, since models come from callers.
const maxURLs = 1000

func (s *saved) keepURL(a address, u *url.URL) {
	if s.kept.Add(1) <= maxURLs {
		s.urls.Store(a, u)
	}
}
