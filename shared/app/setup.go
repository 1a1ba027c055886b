package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/jwt"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage"
)

// SetUp is what Setup made. It is the only place where the keys can be read.
type SetUp struct {
	Organisation string `json:"organisation"`
	Workspace    string `json:"workspace"`     // slug
	AdminKey     string `json:"admin_key"`     // raw
	WorkspaceKey string `json:"workspace_key"` // raw
	Note         string `json:"note"`
}

// Setup makes the first organization, with inline configuration off, a workspace and two
// keys, and notes them in the audit log. It works once: where the organization exists, even
// because another call has just made it, nothing changes and the error reports it.
func (c *Core) Setup(ctx context.Context) (*SetUp, error) {
	out := &SetUp{Organisation: defaultTenant, Workspace: defaultTenant, Note: "Keep these keys: they are shown this once, only their hashes are stored."}
	out.AdminKey, _ = identity.NewSecret()
	out.WorkspaceKey, _ = identity.NewSecret()
	made, err := c.Bootstrap(ctx, First{AdminKey: out.AdminKey, WorkspaceKey: out.WorkspaceKey, Audited: true})
	if err == nil && made != nil {
		return out, nil
	}
	// The change may have been made although its response was lost, and only this call knows
	// the keys.
	ours, keyErr := c.has(ctx, out.AdminKey)
	switch {
	case keyErr == nil && ours:
		return out, nil
	case err == nil:
		return nil, rejectedSetup()
	}
	if _, exists, getErr := c.Resources.Get(ctx, store.Scope{Org: defaultTenant}, tenant.KindOrganisation, defaultTenant); getErr == nil && exists {
		return nil, rejectedSetup()
	}
	return nil, fmt.Errorf("setup created nothing: %w", err)
}

// has reports whether a raw key is stored.
func (c *Core) has(ctx context.Context, raw string) (bool, error) {
	_, ok, err := c.Store.Table(store.Keys).Get(ctx, identity.CredentialKey(identity.SecretOf(raw)), true)
	return ok, err
}

func rejectedSetup() error {
	return fmt.Errorf("setup runs once: the organization %q already exists and nothing was changed. Its keys were shown when it was created; with an admin key, POST /v1/api-keys/organisation/service creates more", defaultTenant)
}

// auditFirst puts the first keys into the audit log.
func auditFirst(tx *resource.Tx, ws *resource.Record, made *BootstrapResult) error {
	for _, k := range []struct {
		kind           identity.KeyType
		raw, workspace string
	}{{identity.OrganisationService, made.AdminKey, ""}, {identity.WorkspaceService, made.WorkspaceKey, ws.ID}} {
		err := audit.Append(tx, audit.Entry{
			ResourceType: k.kind.ScopeFamily(), Action: audit.Create, WorkspaceID: k.workspace, StatusCode: 200,
			Details: map[string]string{"event": "setup", "key_masked": identity.Mask(k.raw)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tokens accepts tokens signed by the keys that an organization configured.
func (c *Core) tokens() *jwt.Verifier {
	return jwt.New(jwt.Options{
		Loader: c.Loader, Client: c.Transport, Now: c.Now, ConfigKind: route.KindConfig, Users: membership.Named{},
		Settings: func(_ string, o *tenant.Organisation) jwt.Settings {
			return jwt.Settings{URL: o.Settings.JWKSURL, Set: o.Settings.JWKS, MaxAge: o.Settings.MaxSession()}
		},
		OnRejected: c.rejected,
	})
}

// rejected notes a token that was not accepted in the audit log. When the queue fails, the
// record waits in the outbox.
func (c *Core) rejected(ctx context.Context, org string, r jwt.Rejection) {
	if c.Records == nil {
		return
	}
	e := audit.Entry{
		Action: audit.Login, ResourceType: "auth", StatusCode: r.Status, RequestID: r.By.ID,
		Details: map[string]string{"jwtToken": r.Masked, "error": r.Reason},
	}
	if r.By.Request != nil {
		e.Describe(r.By.Request)
	}
	if err := c.Records.Record(context.WithoutCancel(ctx), org, e); err != nil {
		slog.Error("a rejected token was not recorded in the audit log", "error", err)
	}
}

// MayReadMetrics checks that a request has a key of the organization with analytics.view:
// the metrics of a process are about all of its workspaces.
func (c *Core) MayReadMetrics(r *http.Request) error {
	token, _, err := identity.Token(r.Header)
	if err != nil {
		return err
	}
	who, err := c.Auth.Authenticate(r.Context(), token, identity.AuthenticationAttempt{})
	if err != nil {
		return err
	}
	if who.Scope.Workspace != "" || !who.Scopes.Has("analytics.view") {
		return fault.New(fault.InsufficientScope, "", "The metrics need a key of the organization with the scope analytics.view")
	}
	return nil
}

// RetentionDays returns the log retention of the workspaces of an organization by their present
// settings. A scope with a workspace covers only that workspace.
func (c *Core) RetentionDays(ctx context.Context, sc store.Scope) (usage.WorkspaceRetention, error) {
	of, err := tenant.FetchSettings(ctx, c.Resources, sc)
	if err != nil {
		return usage.WorkspaceRetention{}, err
	}
	retention := usage.WorkspaceRetention{Standard: int(of.Settings.LogDays)}
	if sc.Workspace != "" || !of.Settings.OverridableCategories.LoggingMode {
		return retention, nil
	}
	view, err := c.Loader.Fresh(ctx, sc.Org)
	if err != nil {
		return retention, err
	}
	workspaces, err := c.Workspaces(ctx, sc.Org)
	if err != nil {
		return retention, err
	}
	for _, ws := range workspaces {
		own, err := tenant.LoadSettings(ctx, view, store.Scope{Org: sc.Org, Workspace: ws})
		if err != nil {
			return retention, err
		}
		if days := int(own.Settings.LogDays); days != retention.Standard {
			if retention.Of == nil {
				retention.Of = make(map[string]int)
			}
			retention.Of[ws] = days
		}
	}
	return retention, nil
}

// Workspaces gives the ids of an organization's workspaces, archived ones too.
func (c *Core) Workspaces(ctx context.Context, org string) (ids []string, err error) {
	for _, list := range []func(context.Context, store.Scope, resource.Kind) ([]resource.Row, error){c.Resources.List, c.Resources.ListArchived} {
		rows, err := list(ctx, store.Scope{Org: org}, tenant.KindWorkspace)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			ids = append(ids, rows[i].ID)
		}
	}
	return ids, nil
}
