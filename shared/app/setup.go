package app

import (
	"context"
	"fmt"

	"gateway/shared/audit"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// SetUp is what Setup made. It is the only place where the keys can be read.
type SetUp struct {
	Organisation string `json:"organisation"`
	Workspace    string `json:"workspace"`     // slug
	AdminKey     string `json:"admin_key"`     // raw
	WorkspaceKey string `json:"workspace_key"` // raw
	Note         string `json:"note"`
}

// Setup makes the first organisation, with inline configuration off, a workspace and two
// keys, and notes them in the audit log. It works once: where the organisation exists, even
// because another call has just made it, nothing changes and the error says so.
func (c *Core) Setup(ctx context.Context) (*SetUp, error) {
	out := &SetUp{Organisation: defaultTenant, Workspace: defaultTenant, Note: "Keep these keys: they are shown this once, only their hashes are stored."}
	out.AdminKey, _ = identity.NewSecret()
	out.WorkspaceKey, _ = identity.NewSecret()
	made, err := c.Bootstrap(ctx, First{AdminKey: out.AdminKey, WorkspaceKey: out.WorkspaceKey, Audited: true})
	if err == nil && made != nil {
		return out, nil
	}
	// The change may have been made although its answer was lost, and only this call knows
	// the keys.
	ours, keyErr := c.has(ctx, out.AdminKey)
	switch {
	case keyErr == nil && ours:
		return out, nil
	case err == nil:
		return nil, refusedSetup()
	}
	if _, exists, getErr := c.Resources.Get(ctx, store.Scope{Org: defaultTenant}, tenant.KindOrganisation, defaultTenant); getErr == nil && exists {
		return nil, refusedSetup()
	}
	return nil, fmt.Errorf("setup made nothing: %w", err)
}

// has reports whether a raw key is stored.
func (c *Core) has(ctx context.Context, raw string) (bool, error) {
	_, ok, err := c.Store.Table(store.Keys).Get(ctx, identity.CredentialKey(identity.SecretOf(raw)), true)
	return ok, err
}

func refusedSetup() error {
	return fmt.Errorf("setup is done once: the organisation %q exists already and nothing was changed. Its keys were shown when it was made; with an admin key, POST /v1/api-keys/organisation/service makes more", defaultTenant)
}

// auditFirst puts the first keys into the audit log.
func auditFirst(tx *resource.Tx, ws *resource.Record, made *Made) error {
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
