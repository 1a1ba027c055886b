// Package providers is the family of saved providers: an integration made
// callable in one workspace under a slug. Virtual keys are the older form of
// the same: a provider with an integration of its own.
package providers

import (
	"encoding/json"
	"fmt"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Deps is what the family works with.
type Deps struct {
	Ledger *ledger.Ledger
	// CheckURL is the egress rule for hosts that people name.
	CheckURL provider.URLCheck
}

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.describe()
	f.describeKeys()
	return admin.Family{Name: "providers", Doc: "Saved providers and virtual keys.", Routes: append(f.providers.Routes(), f.keys.Routes()...)}
}

type family struct {
	Deps
	providers admin.Collection[provider.Instance]
	keys      admin.Collection[provider.Instance]
}

// Scopes of the two forms; those of virtual keys open providers too.
const (
	scopeProviders   = "providers"
	scopeVirtualKeys = "virtual_keys"
)

func (f *family) describe() {
	f.providers = admin.Collection[provider.Instance]{
		Object: "provider", Path: "/providers", Resource: scopeProviders,
		Scopes: func(action string) []string {
			return []string{scopeProviders + "." + action, scopeVirtualKeys + "." + action}
		},
		Fields: append(fields(),
			admin.Field{Name: "integration_id", Doc: "Slug of the integration, which cannot be changed.", Type: admin.String, Required: true, Min: 1, Max: provider.MaxSlug, Trigger: true}),
		ReadQuery: []admin.Field{{Name: "include_configurations", Type: admin.Boolean, Default: false, Doc: "Also show the integration's configurations, secrets masked; for service keys."}},
		BeforeCreate: func(c *admin.Call, tx *resource.Tx, rec *resource.Record, in *provider.Instance) error {
			if err := bind(c, tx, rec, in); err != nil {
				return err
			}
			return prepare(c, nil, in)
		},
		BeforeUpdate: func(c *admin.Call, _ *resource.Tx, _, rec *resource.Record, was, in *provider.Instance) error {
			if c.Body.Given("integration_id") {
				if s := c.Body.Text("integration_id"); s != was.IntegrationSlug && s != was.IntegrationID {
					return fault.Invalid("integration_id", "cannot be changed")
				}
			}
			return prepare(c, was, in)
		},
		Created: func(_ *admin.Call, rec *resource.Record, _ *provider.Instance) (any, error) {
			return map[string]any{"id": rec.ID, "slug": rec.Slug, "object": "provider"}, nil
		},
		Updated: func(_ *admin.Call, rec *resource.Record, _ *provider.Instance) (any, error) {
			return map[string]any{"id": rec.ID, "slug": rec.Slug}, nil
		},
		CreatedSchema: admin.ObjectSchema(map[string]admin.Schema{"id": {"type": "string"}, "slug": {"type": "string"}, "object": {"const": "provider"}}),
		UpdatedSchema: admin.ObjectSchema(map[string]admin.Schema{"id": {"type": "string"}, "slug": {"type": "string"}}),
		ExtraShown:    shown(),
	}
	f.complete(&f.providers)
}

// complete sets what both forms have in common.
func (f *family) complete(col *admin.Collection[provider.Instance]) {
	col.Kind, col.Param, col.Where, col.WriteRole = provider.KindProvider, "slug", admin.InWorkspace, admin.Manager
	col.Slugs = &admin.Slugs{Max: 15}
	col.List.Tags, col.ArchiveOnDelete = true, true
	col.AfterCreate = use
	col.BeforeDelete = retire
	col.Committed = f.committed
	col.Render = render(col.Object)
	col.Decorate = f.decorate
}

// bind finds the integration of a new provider: the workspace's own before the
// organisation's. One that does not exist and one that is not open to the
// workspace are the same.
func bind(c *admin.Call, tx *resource.Tx, rec *resource.Record, in *provider.Instance) error {
	name := c.Body.Text("integration_id")
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
		in.Bind(&of, i)
		return nil
	}
	return admin.Denied()
}

// use notes that the provider uses its integration, which keeps it in place.
func use(_ *admin.Call, tx *resource.Tx, rec *resource.Record, in *provider.Instance) error {
	of := resource.Ref{Scope: in.IntegrationScope(rec.Scope), Kind: provider.KindIntegration, ID: in.IntegrationID}
	return tx.Use(of, rec.Ref())
}

// prepare settles what the fields alone cannot: dates and the budget. was is nil
// for a new provider.
func prepare(c *admin.Call, was, in *provider.Instance) error {
	if c.Body.Given("expires_at") && !in.ExpiresAt.After(c.Now) {
		return fault.Invalid("expires_at", "must be in the future")
	}
	var old *ledger.UsageLimit
	if was != nil {
		old = was.UsageLimits
	}
	if in.UsageLimits == nil {
		return nil
	}
	if c.Body.Given("usage_limits") {
		in.UsageLimits.Prepare(old, c.Now)
	}
	if was != nil && c.Body.Bool("reset_usage") {
		in.UsageLimits.ResetUsage(c.Now)
		now := c.Now.UTC().Truncate(time.Millisecond)
		in.LastResetAt = &now
	}
	return nil
}

// retire frees what the provider holds; the engine archives it. The integration
// of a virtual key goes with it, unless another provider calls it too.
func retire(c *admin.Call, tx *resource.Tx, rec *resource.Record, in *provider.Instance) error {
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

// committed brings the counters in line with what was changed. It is not needed
// for what requests may do: the next one does the same.
func (f *family) committed(c *admin.Call, old, rec *resource.Record) {
	if rec == nil {
		if s := subject(old); s != nil {
			_ = f.Ledger.Clear(c.Context, s)
		}
		return
	}
	if s := subject(rec); s != nil && len(s.Budgets) > 0 && (c.Body.Has("usage_limits") || c.Body.Has("reset_usage")) {
		_ = f.Ledger.Apply(c.Context, s)
	}
}

func subject(rec *resource.Record) *ledger.Subject {
	in, err := provider.DecodeInstance(*rec)
	if err != nil {
		return nil
	}
	return provider.InstanceSubject(rec.Scope, rec.ID, rec.Slug, rec.Rev, in)
}

func encode(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("providers: encode: %w", err)
	}
	return raw, nil
}
