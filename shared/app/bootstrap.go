package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// First is what an empty store is filled with.
type First struct {
	Organisation string // id; default "default"
	Workspace    string // slug; default "default"
	AdminKey     string // raw organization key; made when empty
	WorkspaceKey string // raw workspace key; made when empty
	// MockURL, when not empty, is the base URL of the built-in mock provider:
	// saved as the providers @mock (OpenAI shape) and @mock-anthropic.
	MockURL string
	// AllowInline lets requests bring their own configuration.
	AllowInline bool
	Audited     bool // the audit log records the new keys
}

// defaultTenant is the id of the first organization and the slug of its workspace.
const defaultTenant = "default"

// BootstrapResult is what Bootstrap made; the raw keys are shown this once.
type BootstrapResult struct{ AdminKey, WorkspaceKey string }

// dataPlaneScopes are those of the first workspace key.
var dataPlaneScopes = []string{
	"completions.write", "models.list", "virtual_keys.list", "prompts.render", "guardrails.invoke",
	"mcp.invoke", "agents.invoke", "feedbacks.read", "feedbacks.write", "analytics.view",
	"logs.list", "logs.view", "logs.read", "logs.write", "logs.export",
}

// Bootstrap fills an empty store with an organization, a workspace, two keys
// and the mock providers. It does nothing when the organization exists: made is
// then nil. MockURL is brought up to date in any case.
func (c *Core) Bootstrap(ctx context.Context, f First) (made *BootstrapResult, err error) {
	if f.Organisation == "" {
		f.Organisation = defaultTenant
	}
	if f.Workspace == "" {
		f.Workspace = defaultTenant
	}
	sc := store.Scope{Org: f.Organisation}
	_, exists, err := c.Resources.Get(ctx, sc, tenant.KindOrganisation, f.Organisation)
	if err != nil {
		return nil, err
	}
	if !exists {
		made, err = c.makeTenant(ctx, sc, f)
		if fault.Is(err, fault.Conflict) { // another process may have been faster
			var there bool
			if _, there, err = c.Resources.Get(ctx, sc, tenant.KindOrganisation, f.Organisation); err == nil && !there {
				err = fault.New(fault.Conflict, "", "the first keys belong to another organization")
			}
			made = nil
		}
		if err != nil {
			return nil, err
		}
	}
	if f.MockURL == "" {
		return made, nil
	}
	ws, ok, err := c.Resources.Get(ctx, sc, tenant.KindWorkspace, f.Workspace)
	if err != nil || !ok {
		return made, err
	}
	in := store.Scope{Org: f.Organisation, Workspace: ws.ID}
	for slug, kind := range map[string]string{"mock": "openai", "mock-anthropic": "anthropic"} {
		if err := c.saveMock(ctx, in, slug, kind, f.MockURL); err != nil {
			return made, err
		}
	}
	return made, nil
}

func (c *Core) makeTenant(ctx context.Context, sc store.Scope, f First) (*BootstrapResult, error) {
	made := &BootstrapResult{AdminKey: f.AdminKey, WorkspaceKey: f.WorkspaceKey}
	if made.AdminKey == "" {
		made.AdminKey, _ = identity.NewSecret()
	}
	if made.WorkspaceKey == "" {
		made.WorkspaceKey, _ = identity.NewSecret()
	}
	return made, c.Resources.Change(ctx, sc, func(tx *resource.Tx) error {
		org := tenant.Organisation{Settings: tenant.Settings{BlockInlineConfig: !f.AllowInline}}
		rec := resource.Record{Scope: sc, Kind: tenant.KindOrganisation, ID: f.Organisation, Name: f.Organisation, Status: tenant.StatusActive}
		if err := create(tx, &rec, org); err != nil {
			return err
		}
		ws := resource.Record{Scope: sc, Kind: tenant.KindWorkspace, Slug: f.Workspace, Name: f.Workspace, Status: tenant.StatusActive}
		if err := create(tx, &ws, tenant.Workspace{IsDefault: true}); err != nil {
			return err
		}
		admin := identity.Key{Type: identity.OrganisationService, CreationMode: "auto", Rank: identity.RankOwner, Scopes: identity.ScopesFor(identity.OrganisationService), Secret: identity.SecretOf(made.AdminKey)}
		if err := createKey(tx, sc, "first admin key", &admin, ""); err != nil {
			return err
		}
		key := identity.Key{Type: identity.WorkspaceService, CreationMode: "auto", Rank: identity.RankWorkspaceAdmin, Scopes: dataPlaneScopes, Secret: identity.SecretOf(made.WorkspaceKey)}
		if err := createKey(tx, store.Scope{Org: sc.Org, Workspace: ws.ID}, "first workspace key", &key, ws.Slug); err != nil || !f.Audited {
			return err
		}
		return auditFirst(tx, &ws, made)
	})
}

// saveMock makes or moves a saved provider that points at the mock provider.
func (c *Core) saveMock(ctx context.Context, sc store.Scope, slug, kind, url string) error {
	return c.Resources.Change(ctx, sc, func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(sc, provider.KindIntegration, slug)
		if err != nil {
			return err
		}
		if ok {
			in, err := provider.DecodeIntegration(rec)
			if err != nil || in.Configurations["custom_host"] == url {
				return err
			}
			in.Configurations["custom_host"] = url
			if rec.Body, err = json.Marshal(in); err != nil {
				return err
			}
			return tx.Update(&rec)
		}
		in := provider.Integration{AIProviderID: kind, AllowAllModels: true, Configurations: map[string]any{"custom_host": url}, Masked: map[string]string{provider.SecretKey: identity.Mask(mockKey)}}
		rec = resource.Record{Scope: sc, Kind: provider.KindIntegration, ID: resource.NewID(), Slug: slug, Name: "Built-in " + slug, Status: provider.StatusActive, Looked: true}
		if err := rec.SetSecret(ctx, c.Sealer, provider.SecretKey, []byte(mockKey)); err != nil {
			return err
		}
		if err := create(tx, &rec, in); err != nil {
			return err
		}
		inst := provider.Instance{IntegrationID: rec.ID, IntegrationSlug: slug, AIProviderID: kind}
		p := resource.Record{Scope: sc, Kind: provider.KindProvider, Slug: slug, Name: "Built-in " + slug, Status: provider.StatusActive}
		if err := create(tx, &p, inst); err != nil {
			return err
		}
		return tx.Use(rec.Ref(), p.Ref())
	})
}

// mockKey is the credential that the mock provider accepts; it opens nothing else.
const mockKey = "mock-key-of-this-gateway"

func create(tx *resource.Tx, rec *resource.Record, form any) error {
	var err error
	if rec.Body, err = json.Marshal(form); err != nil {
		return fmt.Errorf("app: %s: %w", rec.Kind, err)
	}
	return tx.Create(rec)
}

func createKey(tx *resource.Tx, sc store.Scope, name string, k *identity.Key, workspaceSlug string) error {
	rec := resource.Record{Scope: sc, Kind: identity.KindKey, Name: name, Status: identity.StatusActive, Fields: map[string]string{"type": string(k.Type)}}
	if err := create(tx, &rec, k); err != nil {
		return err
	}
	return identity.Stage(tx, &rec, k, workspaceSlug)
}

// RecoverAdminKey creates an admin key for an organization that has lost its keys. It returns
// the raw key, which is stored nowhere, and its id. The audit log records it.
func RecoverAdminKey(ctx context.Context, c *Core, organization string) (key, id string, err error) {
	sc := store.Scope{Org: organization}
	if organization == "" || strings.ContainsAny(organization, "/#\x00") {
		return "", "", fault.Invalid("organization", "must be the id of an organization")
	}
	_, ok, err := c.Resources.Get(ctx, sc, tenant.KindOrganisation, organization)
	if err != nil {
		return "", "", err
	}
	if !ok {
		return "", "", fault.Invalid("organization", "%.100q does not exist", organization)
	}
	raw, _ := identity.NewSecret()
	k := identity.Key{Type: identity.OrganisationService, CreationMode: "auto", Rank: identity.RankOwner, Scopes: identity.ScopesFor(identity.OrganisationService), Secret: identity.SecretOf(raw)}
	rec := resource.Record{Scope: sc, Kind: identity.KindKey, ID: resource.NewID(), Name: "recovered admin key", Status: identity.StatusActive, Fields: map[string]string{"type": string(k.Type)}}
	err = c.Resources.Change(ctx, sc, func(tx *resource.Tx) error {
		if err := create(tx, &rec, k); err != nil {
			return err
		}
		if err := identity.Stage(tx, &rec, &k, ""); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			ResourceType: k.Type.ScopeFamily(), ResourceID: rec.ID, Action: audit.Create, StatusCode: 200,
			Details: map[string]string{"event": "recovery", "key_masked": identity.Mask(raw)},
		})
	})
	if err != nil {
		return "", "", err
	}
	return raw, rec.ID, nil
}
