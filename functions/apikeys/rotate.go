package apikeys

import (
	"slices"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

// secretSchema describes the response that shows a raw key; key is the schema of the key.
func secretSchema(key admin.Schema) admin.Schema {
	return admin.Closed(map[string]admin.Schema{
		"id": {"type": "string"}, "key": key, "key_transition_expires_at": {"type": []string{"string", "null"}, "format": "date-time"},
	})
}

// secretRoutes give a key a new secret, and hand out one that waits.
func (f *family) secretRoutes() []admin.Route {
	routes := f.keys.ItemRoutes(
		admin.Route{Method: "POST", Path: "/api-keys/{id}/rotate", Name: "rotateApiKey", Recent: true, Errors: []int{409}, Do: f.keys.WithItem("rotate", f.rotate),
			Doc: "Rotate the key's secret; the old one works until key_transition_expires_at. For another user's key, key is null, and the user collects the new secret.",
			Body: []admin.Field{{
				Name: "key_transition_period_ms", Doc: "How long the old and the new secret are both valid, for this rotation.",
				Type: admin.Integer, Min: identity.MinTransition.Milliseconds(), Max: maxTransition,
			}, {
				Name: "during_transition", Type: admin.String, Enum: []string{replaceNew, endPrevious},
				Doc: "What to do while the previous secret is still valid, which is a 409 otherwise. replace returns another new secret in place of the last one, if its response was lost; without a valid previous secret it is a usual rotation. end ends the previous secret now, and key is null.",
			}}},
		admin.Route{Method: "POST", Path: "/api-keys/{id}/collect", Name: "collectApiKey", Recent: true, Errors: []int{404}, Do: f.keys.WithItem("rotate", f.collect),
			Doc: "Collect, once, the new secret of a key after an automatic rotation, or of a user's key that others created or rotated. Only the user can collect a user's key. 404 if there is none."})
	for i := range routes {
		r := &routes[i]
		key := admin.Schema{"type": "string"}
		if r.Name == "rotateApiKey" {
			key = admin.Schema{"type": []string{"string", "null"}} // of another user
		}
		r.Scopes, r.Role, r.BodyMode = append(anyOf("rotate"), anyOf("update")...), admin.Member, admin.OptionalBody
		r.Action, r.Response = audit.Rotate, secretSchema(key)
	}
	return routes
}

// Values of during_transition.
const (
	replaceNew  = "replace"
	endPrevious = "end"
)

// rotate gives a key a new secret. Id, limits and usage stay.
func (f *family) rotate(c *admin.Call) (any, error) {
	var show any
	var until time.Time
	err := f.keys.Edit(c, func(tx *resource.Tx, ch *change) error {
		rec, k := ch.Rec, ch.Form
		if identity.Live(rec.Status, k, c.Now) != identity.StatusActive {
			return fault.New(fault.Conflict, "id", "only an active key can be rotated; change expires_at of one that has expired, and resume one that is paused")
		}
		transition := k.Rotation.Transition()
		if ms := c.Body.Int("key_transition_period_ms"); ms > 0 {
			transition = time.Duration(ms) * time.Millisecond
		}
		if !k.Rotation.AllowsTransition(transition) {
			return fault.Invalid("key_transition_period_ms", "must be less than the rotation period")
		}
		if err := mayRotate(c, tx, ch); err != nil {
			return err
		}
		_, personal := k.Granted(rec.CreatedBy)
		var raw string
		var err error
		switch do := c.Body.Text("during_transition"); {
		case do == endPrevious && !k.InTransition(c.Now):
			return fault.New(fault.Conflict, "during_transition", "the key has no previous secret that is still valid")
		case do == endPrevious:
			c.AuditDetails(map[string]string{"api_key_id": rec.ID, "rotation_mode": "manual", "old_key_masked": k.Previous.Masked, "transition_expires_at": c.Now.UTC().Format(time.RFC3339)})
			k.Previous, until = nil, c.Now
			return identity.Reschedule(tx, rec.Ref(), ch.OldForm, k)
		case do == replaceNew && k.InTransition(c.Now):
			raw = identity.Replace(k)
		default:
			if raw, err = identity.Rotate(k, c.Now, transition); err != nil {
				return err
			}
			k.Previous.Shared = !personal
		}
		sponsor(c, k)
		if owns(c, k) && k.Rank == "" { // its user alone knows the secret from now on
			k.Rank, _ = k.Granted(rec.CreatedBy)
		}
		if show, err = deliver(c, rec, k, raw); err != nil {
			return err
		}
		until = *k.Previous.ExpiresAt
		c.AuditDetails(map[string]string{
			"api_key_id": rec.ID, "rotation_mode": "manual", "old_key_masked": ch.OldForm.Secret.Masked, "transition_expires_at": until.UTC().Format(time.RFC3339),
		})
		e := k.Notice(rec, notice.KeyRotated, "was rotated", map[string]string{"rotation_mode": "manual", "transition_expires_at": until.UTC().Format(time.RFC3339)})
		if show != nil {
			e.Audience = notice.Audience{} // who rotates it knows
		}
		staged, err := notice.Stage(e, tx.Now())
		if err != nil {
			return err
		}
		tx.Do(staged, nil)
		return identity.Reschedule(tx, rec.Ref(), ch.OldForm, k)
	})
	if err != nil {
		return nil, err
	}
	return admin.Members{"id": c.Param("id"), "key": show, "key_transition_expires_at": admin.FormatTime(until)}, nil
}

// collect returns the secret that waits, and clears it.
func (f *family) collect(c *admin.Call) (any, error) {
	out := admin.Members{"id": c.Param("id"), "key_transition_expires_at": nil}
	err := f.keys.Edit(c, func(tx *resource.Tx, ch *change) error {
		if err := mayCollect(c, tx, ch); err != nil {
			return err
		}
		if !ch.Rec.HasSecret(identity.UncollectedSecret) {
			return fault.New(fault.NotFound, "id", "there is no new secret to collect")
		}
		secrets, err := ch.Rec.OpenSecrets(c.Context, c.Sealer)
		if err != nil {
			return fault.Unavailable(err)
		}
		out["key"] = string(secrets[identity.UncollectedSecret])
		if ch.Form.Previous != nil {
			out["key_transition_expires_at"] = timeOf(ch.Form.Previous.ExpiresAt)
		}
		return ch.Rec.SetSecret(c.Context, c.Sealer, identity.UncollectedSecret, nil)
	})
	return out, err
}

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
	Available int64         `json:"available" doc:"Requests or tokens, depending on type, that are left in the current window."`
	ResetsAt  admin.Instant `json:"resets_at" doc:"End of the current window."`
}

// selfRoute describes the caller.
func (f *family) selfRoute() admin.Route {
	return admin.Route{Method: "GET", Path: "/api-keys/self", Name: "getOwnApiKey", Scopes: []string{admin.AnyScope}, Level: admin.Shared, Do: f.self,
		Doc: "Describe the credential of this request: its key, organization, workspace, user, scopes, and limits with what is left. The key itself is not shown.",
		ResponseOf: func() admin.Schema {
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
		UserID: admin.NullIfZero(by.UserID), Role: string(by.Role), Scopes: callerScopes(by), RateLimits: []rateState{},
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

// callerScopes returns the scopes of a caller, sorted.
func callerScopes(by *admin.Caller) []string {
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
