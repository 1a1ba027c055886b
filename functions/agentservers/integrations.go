package agentservers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/admin/sharing"
	"gateway/shared/audit"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/tenant/upstream"
)

const maxMappings = 100

func (f *family) describeIntegrations() *admin.Collection[a2a.Integration] {
	configurations := admin.FieldOf[a2a.Configuration]("configurations", "How the agent is called. An update changes the fields that it names; null removes one. Secrets are masked on read.", 0)
	forward := configurations.Member("forward_headers")
	forward.Type, forward.Check, forward.Form = admin.Any, upstream.CheckForward, upstream.ForwardSchema
	return &admin.Collection[a2a.Integration]{
		Kind: a2a.KindIntegration, Object: "agent-integration", Path: "/agent-integrations", Param: "integrationId",
		Resource: "agent_integrations", WriteRole: admin.Manager, Slugs: &admin.Slugs{Max: 40},
		Levels: &admin.Levels[a2a.Integration]{
			Organisation: "organisation_agent_integrations", Workspace: "workspace_agent_integrations", Filter: true,
			Open: func(it integration, workspace string) bool { return it.Form.Access.OpenTo(it.Record, workspace) },
		},
		List: admin.List{Paging: admin.Paging{DefaultSize: 100}, Envelope: &admin.MoreEnvelope, Search: true},
		Fields: []admin.Field{
			admin.NameField(a2a.MaxName), admin.SlugField(a2a.MaxSlugLong),
			{Name: "url", Required: true, Doc: "Address of the agent, http or https."},
			{Name: "auth_type", Doc: "How the gateway authenticates to it; default none."},
			{Name: "description"}, configurations,
			admin.FieldOf[[]provider.SecretMapping]("secret_mappings", "Headers from a secret manager: configurations.headers.<name>.", maxMappings),
		},
		New:      func(*admin.Call) a2a.Integration { return a2a.Integration{AuthType: a2a.AuthNone} },
		Computed: shownOfIntegration(), Before: f.before, Decorate: countWorkspaces,
		Retire: func(_ *admin.Call, tx *resource.Tx, it integration) error {
			return provider.LinkSecrets(tx, it.Ref(), provider.Links{Was: it.Form.SecretMappings})
		},
		Committed: func(c *admin.Call, ch *integrationChange) {
			if ch.Rec != nil && c.Value(changed) != nil {
				f.learn(c, ch.Rec.Ref())
			}
		},
	}
}

func shownOfIntegration() []admin.ComputedField[a2a.Integration] {
	of := func(fd admin.Field, value func(it integration) any) admin.ComputedField[a2a.Integration] {
		return admin.ComputedField[a2a.Integration]{Field: fd, Value: func(_ *admin.Call, it integration) any { return value(it) }}
	}
	return []admin.ComputedField[a2a.Integration]{
		of(admin.Field{Name: "type", Type: admin.String, Enum: []string{"organisation", "workspace"}, Required: true}, func(it integration) any { return admin.LevelOf(it.Record) }),
		of(admin.Field{Name: "owner_id", Type: admin.String, Required: true}, func(it integration) any { return it.CreatedBy }),
		of(admin.Field{Name: "configurations", Type: admin.Object, Open: true, Required: true, Doc: "Secrets are masked."}, func(it integration) any { return admin.OrEmptyMap(it.Form.Configurations) }),
		of(admin.Field{Name: "secret_mappings", Type: admin.Array, Of: &admin.Field{Type: admin.Object, Open: true}, Required: true}, func(it integration) any { return admin.OrEmpty(it.Form.SecretMappings) }),
		of(admin.Field{Name: "global_workspace_access", Type: admin.Object, Single: true, Required: true, Form: sharing.GlobalSchema}, func(it integration) any { return sharing.Global(&it.Form.Access) }),
		of(admin.Field{Name: "agent_card", Type: admin.Object, Open: true, Single: true, Doc: "As in the agent's card."}, func(it integration) any {
			if len(it.Form.Card) == 0 {
				return nil
			}
			return it.Form.Card
		}),
		of(admin.Field{Name: "card_signature", Type: admin.Object, Single: true, Form: signatureSchema, Doc: "Result of verifying the signatures of the agent's card; null: it has none. A card with an invalid signature is stored nevertheless, because libraries sign cards in several forms. Clients get the gateway's signature instead."}, func(it integration) any {
			if it.Form.Signature == nil {
				return nil
			}
			return it.Form.Signature
		}),
		of(admin.Field{Name: "sync_status", Type: admin.String, Enum: []string{a2a.SyncPending, a2a.SyncSuccess, a2a.SyncFailed}, Required: true}, func(it integration) any { return it.Form.Synced.Status }),
		of(admin.Field{Name: "sync_error", Type: admin.String}, func(it integration) any { return admin.OrNull(it.Form.Synced.Error) }),
		of(admin.Field{Name: "last_synced_at", Type: admin.Timestamp}, func(it integration) any {
			if it.Form.Synced.At == nil {
				return nil
			}
			return admin.FormatTime(*it.Form.Synced.At)
		}),
		{Field: admin.Field{Name: "workspaces_count", Type: admin.Integer, Required: true}},
	}
}

// changed marks a call after which the card must be fetched again.
const changed = "changed"

// before applies the configurations and validates the integration.
func (f *family) before(c *admin.Call, tx *resource.Tx, ch *integrationChange) error {
	form := ch.Form
	touched := ch.Creates()
	for _, name := range []string{"url", "auth_type", "configurations", "secret_mappings"} {
		touched = touched || c.Body.Has(name)
	}
	if !touched {
		return nil
	}
	if form.AuthType == "" {
		form.AuthType = a2a.AuthNone
	}
	if c.Body.Has("url") {
		u, err := f.CheckURL(form.URL, "url")
		if err != nil {
			return err
		}
		form.URL = u.String()
	}
	if c.Body.Has("secret_mappings") {
		form.SecretMappings = nil
		if err := c.Body.Decode("secret_mappings", &form.SecretMappings); err != nil {
			return err
		}
		if bad := fault.Invalids(a2a.CheckMappings(form.SecretMappings)); bad != nil {
			return bad
		}
	}
	set := upstream.Change{Clear: c.Body.Null("configurations")}
	if c.Body.Has("configurations") {
		if err := c.Body.Decode("configurations", &set.Members); err != nil {
			return err
		}
		if err := form.Configure(c.Context, c.Sealer, ch.Rec, set); err != nil {
			return err
		}
	}
	if bad := fault.Invalids(form.Check()); bad != nil {
		return bad
	}
	addresses := form.Addresses(ch.OldForm)
	pinned := hostpin.Change{Addresses: addresses, Retained: set.Retained(ch.Rec)}
	if err := pinned.Check(); err != nil {
		return err
	}
	links := provider.Links{Was: ch.OldForm.SecretMappings, Now: form.SecretMappings, Addresses: addresses, By: c.SecretReferences()}
	if err := provider.LinkSecrets(tx, ch.Rec.Ref(), links); err != nil {
		return err
	}
	form.Synced.Status, form.Synced.Error = a2a.SyncPending, ""
	c.SetValue(changed, true)
	return nil
}

func countWorkspaces(c *admin.Call, items []integration, objects []admin.Members) error {
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return err
	}
	for n, it := range items {
		objects[n]["workspaces_count"] = sharing.Count(it.Record, &it.Form.Access, spaces)
	}
	return nil
}

// Timeouts of a call to an agent: for its card, and of a call that creates or changes an
// integration, which succeeds without the card.
const (
	testTime  = 20 * time.Second
	learnTime = 10 * time.Second
)

// fetch fetches and stores the card of an integration.
func (f *family) fetch(ctx context.Context, r *resource.Resources, rec *resource.Record, in store.Scope, within time.Duration) (card json.RawMessage, callErr, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	card, callErr = f.Opener.Card(ctx, rec, in)
	var failed *upstream.Failure
	if callErr != nil && !errors.As(callErr, &failed) {
		return nil, callErr, callErr
	}
	if callErr == nil && len(card) > a2a.MaxStoredCard {
		failed = &upstream.Failure{Status: http.StatusOK, Why: "the agent's card is too large to be stored"}
		callErr = failed
	}
	var signed *a2a.Verified
	if failed == nil {
		form, err := a2a.DecodeIntegration(*rec)
		if err != nil {
			return nil, callErr, err
		}
		signed = a2a.Verify(ctx, f.Opener.Transport, card, form.URL)
	}
	return card, callErr, storeCard(context.WithoutCancel(ctx), r, rec.Ref(), card, signed, failed)
}

// storeCard stores a card and the result of checking its signatures, or the reason why there is
// none.
func storeCard(ctx context.Context, r *resource.Resources, ref resource.Ref, card json.RawMessage, signed *a2a.Verified, failed *upstream.Failure) error {
	return r.Change(ctx, ref.Scope.Organisation(), func(tx *resource.Tx) error {
		_, err := admin.Amend(tx, ref.Scope, ref.Kind, ref.ID, func(form *a2a.Integration) {
			at := tx.Now().UTC()
			form.Synced = a2a.Synced{Status: a2a.SyncSuccess, At: &at}
			if failed != nil {
				form.Synced.Status, form.Synced.Error = a2a.SyncFailed, failed.Why
				return
			}
			form.Card, form.Signature = card, signed
		})
		return err
	})
}

// learn fetches the card of a new or changed integration. The integration is valid without it.
func (f *family) learn(c *admin.Call, ref resource.Ref) {
	rec, ok, err := c.Resources.Get(c.Context, ref.Scope, ref.Kind, ref.ID)
	if err != nil || !ok {
		return
	}
	if _, _, err := f.fetch(c.Context, c.Resources, &rec, rec.Scope, learnTime); err != nil {
		slog.Warn("the card of an agent could not be fetched", "request_id", c.RequestID, "integration", ref.ID, "error", err.Error())
	}
}

var probeSchema = admin.Closed(map[string]admin.Schema{
	"success": {"type": "boolean"}, "status_code": {"type": []string{"integer", "null"}}, "response_time_ms": {"type": "integer"}, "url": {"type": "string"},
	"agent_name": {"type": []string{"string", "null"}}, "error": {"type": []string{"string", "null"}},
})

// probe fetches the card and returns the result.
func (f *family) probe(c *admin.Call, rec *resource.Record, in store.Scope, url string) (any, error) {
	began := time.Now()
	card, callErr, err := f.fetch(c.Context, c.Resources, rec, in, testTime)
	if err != nil {
		return nil, err
	}
	out := admin.Members{"success": callErr == nil, "status_code": 200, "response_time_ms": time.Since(began).Milliseconds(), "url": url, "agent_name": nil, "error": nil}
	var failed *upstream.Failure
	if errors.As(callErr, &failed) {
		if out["error"], out["status_code"] = failed.Why, nil; failed.Status != 0 {
			out["status_code"] = failed.Status
		}
		return out, nil
	}
	var named struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(card, &named) == nil {
		out["agent_name"] = named.Name
	}
	return out, nil
}

// signatureSchema describes card_signature.
var signatureSchema = admin.Schema{"type": []string{"object", "null"}, "additionalProperties": false, "properties": map[string]admin.Schema{
	"status": {"type": "string", "enum": []string{a2a.SignatureValid, a2a.SignatureInvalid, a2a.SignatureUnchecked}}, "key_id": {"type": "string"}, "key_set": {"type": "string"},
}}

var cardSchema = admin.Schema{"type": "object", "description": "The card of an agent, as the protocol describes it."}

// integrationRoutes returns the routes in addition to the standard ones.
func (f *family) integrationRoutes() []admin.Route {
	headers := admin.Field{Name: "headers", Type: admin.Map, Of: &admin.Field{Type: admin.String, Max: 8192}, Max: 50, Doc: "Sent with the request for the card."}
	routes := f.integrations.ItemRoutes(
		admin.Route{Method: "POST", Path: "/agent-integrations/{integrationId}/test", Name: "testAgentIntegration", Doc: "Fetch and store the agent's card.", Action: audit.Test, Response: probeSchema,
			Do: f.integrations.WithItem("update", func(c *admin.Call) (any, error) {
				it, err := f.integrations.Find(c)
				if err != nil {
					return nil, err
				}
				return f.probe(c, it.Record, it.Scope, it.Form.URL)
			})},
		admin.Route{Method: "POST", Path: "/agent-integrations/fetch-agent-card", Name: "fetchAgentCard", Doc: "Fetch the card of an agent that is not registered yet. Nothing is stored.", Action: audit.Test, Response: cardSchema, Errors: []int{502},
			Scopes: f.integrations.ScopesFor("create"), Body: []admin.Field{{Name: "url", Type: admin.String, Required: true, Min: 1, Max: 2048}, headers}, Do: f.integrations.WithItem("create", f.fetchCard)},
	)
	return routes
}

func (f *family) fetchCard(c *admin.Call) (any, error) {
	u, err := f.CheckURL(c.Body.Text("url"), "url")
	if err != nil {
		return nil, err
	}
	sent := c.Body.TextMap("headers")
	if bad := fault.Invalids(upstream.CheckHeaders("headers", sent)); bad != nil {
		return nil, bad
	}
	h := http.Header{}
	for name, v := range sent {
		h.Set(name, v)
	}
	ctx, cancel := context.WithTimeout(c.Context, testTime)
	defer cancel()
	card, err := a2a.Fetch(ctx, f.Opener.Transport, u.String(), h, nil)
	var failed *upstream.Failure
	switch {
	case errors.As(err, &failed) && egress.IsBlocked(err):
		return nil, fault.Invalid("url", "is an address that the gateway may not call")
	case errors.As(err, &failed):
		return nil, fault.New(fault.ProviderError, "url", failed.Why)
	case err != nil:
		return nil, err
	}
	return card, nil
}
