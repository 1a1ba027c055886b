// Package providers is the family of saved providers: an integration made callable in one
// workspace under a slug. Virtual keys are the older form: a provider with a dedicated
// integration.
package providers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/prompt"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
)

// Deps is what the family works with.
type Deps struct {
	Ledger *ledger.Ledger
	// CheckURL is the egress rule for hosts that people name.
	CheckURL provider.URLCheck
	// For tests of providers: Loader finds them, Secrets and Tokens complete their credentials,
	// and Transport sends requests, or TrustedTransport those to hosts of their own.
	Loader                      *resource.Loader
	Secrets                     *provider.Secrets
	Tokens                      provider.Signer
	Transport, TrustedTransport http.RoundTripper
}

// NewDeps returns the dependencies in an installation.
func NewDeps(c *app.Core) Deps {
	tokens := provider.NewTokens(c.Transport, c.Now)
	return Deps{
		Ledger: c.Ledger, CheckURL: c.Egress.CheckURL, Loader: c.Loader,
		Secrets: provider.NewSecrets(c.Sealer, tokens, c.Transport), Tokens: tokens, Transport: c.Transport, TrustedTransport: c.TrustedTransport,
	}
}

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{d}
	saved, keys := f.providers(), f.keys()
	return admin.Family{Name: "providers", Doc: "Saved providers and virtual keys.", Routes: slices.Concat(saved.Routes(), f.probeRoute(saved, "testProvider"), keys.Routes(), f.probeRoute(keys, "testVirtualKey"), f.integrationProbe(), []admin.Route{catalogRoute()})}
}

type family struct{ Deps }

// Scopes of the two forms; those of virtual keys open providers too.
const (
	scopeProviders   = "providers"
	scopeVirtualKeys = "virtual_keys"
)

func (f *family) providers() *admin.Collection[provider.Instance] {
	return f.complete(&admin.Collection[provider.Instance]{
		Object: "provider", Path: "/providers", Resource: scopeProviders,
		Scopes: func(action string) []string {
			return []string{scopeProviders + "." + action, scopeVirtualKeys + "." + action}
		},
		Fields:    fields(admin.Field{Name: "integration_id", Reference: "/integrations", Fixed: true, Doc: "Slug of the integration, which cannot be changed.", Type: admin.String, Required: true, Min: 1, Max: provider.MaxSlug, Trigger: true}),
		Computed:  shown(),
		ReadQuery: []admin.Field{{Name: "include_configurations", Type: admin.Boolean, Default: false, Doc: "Also return the integration's configurations, with masked secrets; for service keys."}},
		Before: func(c *admin.Call, tx *resource.Tx, ch *change) error {
			if ch.Creates() {
				if err := bind(c, tx, ch); err != nil {
					return err
				}
			} else if s := c.Body.Text("integration_id"); c.Body.HasValue("integration_id") && s != ch.OldForm.IntegrationSlug && s != ch.OldForm.IntegrationID {
				return fault.Invalid("integration_id", "cannot be changed")
			}
			return inFuture(c, ch)
		},
		Created: &admin.Reply{Members: []string{"id", "slug", "object"}},
		Updated: &admin.Reply{Members: []string{"id", "slug"}},
	})
}

// complete sets what both forms have in common.
func (f *family) complete(col *admin.Collection[provider.Instance]) *admin.Collection[provider.Instance] {
	col.Kind, col.Param, col.Level, col.WriteRole = provider.KindProvider, "slug", admin.InWorkspace, admin.Manager
	col.Slugs, col.Limits = &admin.Slugs{Max: 15}, f.limits()
	col.List.Tags, col.ArchiveOnDelete = true, true
	col.After, col.Retire, col.Decorate = use, retire, decorate
	return col
}

// bind finds the integration of a new provider: the workspace's own before the
// organization's. One that does not exist and one that is not open to the
// workspace are the same.
func bind(c *admin.Call, tx *resource.Tx, ch *change) error {
	rec, name := ch.Rec, c.Body.Text("integration_id")
	for _, sc := range []store.Scope{rec.Scope, rec.Scope.Organisation()} {
		of, ok, err := tx.Get(sc, provider.KindIntegration, name)
		if err != nil {
			return err
		}
		if !ok || of.Archived() {
			continue
		}
		i, err := provider.DecodeIntegration(of)
		if err != nil {
			return err
		}
		if !i.OpenTo(&of, rec.Scope.Workspace) {
			break
		}
		ch.Form.Bind(&of, i)
		return nil
	}
	return fault.Invalid("integration_id", "must name an integration that this workspace may use; PUT /v1/integrations/{id}/workspaces grants access")
}

// use records that the provider uses its integration, which prevents deletion of the
// integration.
func use(_ *admin.Call, tx *resource.Tx, ch *change) error {
	if !ch.Creates() {
		return nil
	}
	of := resource.Ref{Scope: ch.Form.IntegrationScope(ch.Rec.Scope), Kind: provider.KindIntegration, ID: ch.Form.IntegrationID}
	return tx.Use(of, ch.Rec.Ref())
}

// inFuture rejects a date that has passed.
func inFuture(c *admin.Call, ch *change) error {
	if c.Body.HasValue("expires_at") && !ch.Form.ExpiresAt.After(c.Now) {
		return fault.Invalid("expires_at", "must be in the future")
	}
	return nil
}

// retire prevents the deletion of a provider that configs or prompts name, and releases the
// resources of a provider; the engine archives it. The integration of a virtual key is deleted
// with it, unless another provider uses it.
func retire(c *admin.Call, tx *resource.Tx, it item) error {
	rec, in := it.Record, it.Form
	named, err := namedBy(c, rec)
	if err != nil {
		return err
	}
	if err := resource.InUse(rec.Ref(), named); err != nil {
		return err
	}
	if err := provider.Retire(tx, rec); err != nil || !in.VirtualKey {
		return err
	}
	of, ok, err := tx.Get(in.IntegrationScope(rec.Scope), provider.KindIntegration, in.IntegrationID)
	if err != nil || !ok || of.Archived() {
		return err
	}
	users, err := c.Resources.Users(c.Context, of.Ref())
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.ID != rec.ID {
			return nil
		}
	}
	of.UpdatedBy = rec.UpdatedBy
	return tx.ArchiveAndFreeSlug(&of)
}

// namedBy are the configs of the workspace that name a provider, and the prompts that
// use it in the version that is in force.
func namedBy(c *admin.Call, rec *resource.Record) ([]resource.Ref, error) {
	out, err := route.Users(c.Context, c.Resources, []store.Scope{rec.Scope}, rec, func(refs route.Refs) []route.Ref { return refs.Providers })
	if err != nil {
		return nil, err
	}
	prompts, err := c.Resources.List(c.Context, rec.Scope, prompt.KindPrompt)
	if err != nil {
		return nil, err
	}
	for i := range prompts {
		if prompts[i].Fields[prompt.FieldProvider] == rec.Slug {
			out = append(out, resource.Ref{Scope: rec.Scope, Kind: prompt.KindPrompt, ID: prompts[i].ID, Name: prompts[i].Name})
		}
	}
	return out, nil
}

func encode(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("providers: encode: %w", err)
	}
	return raw, nil
}

// item and change are a provider and what happens to it.
type (
	item   = admin.Item[provider.Instance]
	change = admin.Change[provider.Instance]
	// instances are one of the two forms of providers.
	instances = admin.Collection[provider.Instance]
)

// fields are those that both forms have.
func fields(more ...admin.Field) []admin.Field {
	slug := admin.SlugField(provider.MaxSlug)
	slug.Doc = "Unique in the workspace; default: generated from the name."
	slug.Check = reservedSlug
	return append([]admin.Field{
		admin.NameField(provider.MaxName), slug, {Name: "note"},
		{Name: "expires_at", Doc: "When the provider stops working; null: never."},
		admin.TagsField(),
	}, more...)
}

// reservedSlug rejects the slugs of other routes below /providers.
func reservedSlug(raw json.RawMessage) []fault.Detail {
	switch string(raw) {
	case `"` + catalogSlug + `"`, `"health"`:
		return []fault.Detail{{Message: "is the name of a route; choose another"}}
	}
	return nil
}

func (f *family) limits() *admin.Limits[provider.Instance] {
	return &admin.Limits[provider.Instance]{
		Ledger: f.Ledger, Place: ledger.OnProvider, Status: true,
		Budget: func(in *provider.Instance) **ledger.UsageLimit { return &in.UsageLimits },
		Reset:  func(in *provider.Instance) **time.Time { return &in.LastResetAt },
		Subject: func(it item) *ledger.Subject {
			return provider.InstanceSubject(it.Scope, it.ID, it.Slug, it.Rev, it.Form)
		},
	}
}

// shown are members of reads beside the fields; decorate fills what the
// integration says.
func shown(more ...admin.ComputedField[provider.Instance]) []admin.ComputedField[provider.Instance] {
	of := func(name string, t admin.Type, value func(c *admin.Call, it item) any) admin.ComputedField[provider.Instance] {
		return admin.ComputedField[provider.Instance]{Field: admin.Field{Name: name, Type: t, Required: true}, Value: value}
	}
	config := admin.Field{Name: "model_config", Type: admin.Object, Open: true, Absent: map[string]any{}, Doc: "Configurations of the workspace's own integration, without secrets."}
	return append([]admin.ComputedField[provider.Instance]{
		of("integration_id", admin.String, func(_ *admin.Call, it item) any { return it.Form.IntegrationSlug }),
		of("ai_provider_name", admin.String, func(_ *admin.Call, it item) any { return it.Form.AIProviderID }),
		of("status", admin.String, func(c *admin.Call, it item) any {
			if it.Form.ExpiresAt != nil && !it.Form.ExpiresAt.After(c.Now) {
				return provider.StatusExpired
			}
			return it.Status
		}),
		{Field: config},
		{Field: admin.Field{Name: "configurations", Type: admin.Object, Open: true, Optional: true}},
	}, more...)
}

// statusDisabled is the status of a provider with an integration that is not open to the
// workspace; it works again once it is.
const statusDisabled = "disabled"

// decorate adds what the integrations hold, which are read together.
func decorate(c *admin.Call, items []item, objects []admin.Members) error {
	if c.Query.Bool("include_configurations") && c.Caller.UserID != "" {
		return admin.Denied()
	}
	found, err := integrationsOf(c, items)
	if err != nil {
		return err
	}
	for n, it := range items {
		showIntegration(c, it, found[it.Form.IntegrationID], objects[n])
	}
	return nil
}

// integration is a record with its form.
type integration struct {
	rec  resource.Record
	form *provider.Integration
}

// integrationsOf reads the integrations of a page of providers, by id.
func integrationsOf(c *admin.Call, items []item) (map[string]integration, error) {
	ids := make(map[store.Scope][]string, 2)
	seen := make(map[string]bool, len(items))
	for _, it := range items {
		if id := it.Form.IntegrationID; !seen[id] {
			seen[id] = true
			sc := it.Form.IntegrationScope(it.Scope)
			ids[sc] = append(ids[sc], id)
		}
	}
	out := make(map[string]integration, len(seen))
	for sc, of := range ids {
		found, err := c.Resources.GetMany(c.Context, sc, provider.KindIntegration, of)
		if err != nil {
			return nil, err
		}
		for _, rec := range found {
			form, err := provider.DecodeIntegration(rec)
			if err != nil {
				return nil, err
			}
			out[rec.ID] = integration{rec, form}
		}
	}
	return out, nil
}

// showIntegration adds the integration's data to the provider. A workspace sees the
// configurations of an organization's integration only on request.
func showIntegration(c *admin.Call, it item, of integration, o admin.Members) {
	in := it.Form
	if of.form == nil || !of.form.OpenTo(&of.rec, it.Scope.Workspace) {
		if o["status"] == provider.StatusActive || o["status"] == ledger.Exhausted {
			o["status"] = statusDisabled
		}
	}
	if of.form == nil {
		return
	}
	o["integration_id"] = of.rec.Slug
	if !in.IntegrationOrg {
		o["model_config"] = legacyConfig(of.form)
	}
	if o["object"] == objectKey {
		o["secret_mappings"] = []provider.SecretMapping{}
		if !in.IntegrationOrg {
			o["secret_mappings"] = legacyMappings(of.form.SecretMappings)
		}
		o["credentials"] = []provider.CredentialShown{}
		if in.VirtualKey {
			o["credentials"] = of.form.MaskedCredentials()
			if mask, ok := of.form.Masked[provider.SecretKey]; ok {
				o["masked_key"] = mask
			}
		}
	}
	if c.Query.Bool("include_configurations") {
		o["configurations"] = of.form.MaskedConfigurations()
	}
}
