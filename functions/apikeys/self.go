package apikeys

import (
	"slices"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

// caller describes the caller of a request, without its credential.
type caller struct {
	Object         string         `json:"object"`
	Type           string         `json:"type" doc:"organisation-service, workspace-service, workspace-user, jwt or session."`
	ID             *string        `json:"id" doc:"Of the key; null for a session."`
	Name           *string        `json:"name"`
	OrganisationID string         `json:"organisation_id"`
	Workspace      *workspaceRef  `json:"workspace" doc:"null for a credential of the whole organization."`
	UserID         *string        `json:"user_id" doc:"User that the credential belongs to."`
	Role           string         `json:"role" doc:"Role that limits what the scopes permit."`
	Scopes         []string       `json:"scopes"`
	ExpiresAt      *admin.Instant `json:"expires_at"`
	RateLimits     []rateState    `json:"rate_limits"`
}

type workspaceRef struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
	Name string `json:"name"`
}

// rateState is a rate limit with the rest of its current window.
type rateState struct {
	Type      string        `json:"type"`
	Unit      string        `json:"unit"`
	Value     int64         `json:"value"`
	Used      int64         `json:"used" doc:"Counted in the current window."`
	Available int64         `json:"available" doc:"Requests or tokens, as the type says, that are left in the current window."`
	ResetsAt  admin.Instant `json:"resets_at" doc:"End of the current window."`
}

// selfRoute describes the caller.
func (f *family) selfRoute() admin.Route {
	return admin.Route{Method: "GET", Path: "/api-keys/self", Name: "getOwnApiKey", Scopes: []string{admin.AnyScope}, Where: admin.Shared, Do: f.self,
		Doc: "Describe the credential of this request: its key, organization, workspace, user, scopes, and limits with what is left. The key itself is not shown.",
		AnswerOf: func() admin.Schema {
			budget := ledger.OnKey.UsageSchema()
			budget["type"] = "object"
			return admin.MergeSchemas(admin.SchemaOf[caller](), admin.Closed(map[string]admin.Schema{
				"usage_limits": {"type": "array", "items": budget, "description": "Budgets with what is left: one of a key, or those of a token."},
			}))
		}}
}

// self returns the caller. It needs no scope, because every credential may know what it is.
func (f *family) self(c *admin.Call) (any, error) {
	by := &c.Caller
	out := struct {
		caller
		UsageLimits []ledger.BudgetState `json:"usage_limits"`
	}{caller{
		Object: "api-key-self", Type: by.Type, ID: admin.NullIfZero(by.KeyID), OrganisationID: by.Scope.Org,
		UserID: admin.NullIfZero(by.UserID), Role: string(by.Role), Scopes: heldScopes(by), RateLimits: []rateState{},
	}, []ledger.BudgetState{}}
	if by.KeyID != "" && by.Type != string(identity.SignedToken) {
		rec, ok, err := c.Resources.Get(c.Context, by.Scope, identity.KindKey, by.KeyID)
		if err != nil {
			return nil, err
		}
		if ok {
			k, err := resource.Decode[identity.Key](rec)
			if err != nil {
				return nil, err
			}
			if out.Name = &rec.Name; k.ExpiresAt != nil {
				at := admin.Instant(*k.ExpiresAt)
				out.ExpiresAt = &at
			}
		}
	}
	if by.Scope.Workspace != "" && len(by.Workspaces) < 2 {
		rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), tenant.KindWorkspace, by.Scope.Workspace)
		if err != nil {
			return nil, err
		}
		if ok {
			out.Workspace = &workspaceRef{rec.ID, rec.Slug, rec.Name}
		}
	}
	if by.Limits == nil {
		return out, nil
	}
	budgets, err := f.ledger.State(c.Context, by.Limits)
	if err != nil {
		return nil, err
	}
	rates, err := f.ledger.RateStates(c.Context, by.Limits)
	if err != nil {
		return nil, err
	}
	out.UsageLimits = append(out.UsageLimits, budgets...)
	for _, r := range rates {
		out.RateLimits = append(out.RateLimits, rateState{
			string(r.Limit.Type), string(r.Limit.Unit), r.Limit.Value, r.Used, max(r.Limit.Value-r.Used, 0), admin.Instant(r.ResetsAt)})
	}
	return out, nil
}

// heldScopes returns the scopes of a caller, sorted.
func heldScopes(by *admin.Caller) []string {
	out := []string{}
	for _, t := range identity.KeyTypes {
		for _, s := range identity.ScopesFor(t) {
			if by.HasAny([]string{s}) && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	slices.Sort(out)
	return out
}
