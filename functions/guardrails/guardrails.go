// Package guardrails is the administration API of saved guardrails of the organization or a
// workspace: checks of requests and responses, and the actions for their outcome.
package guardrails

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Deps are the dependencies of the package.
type Deps struct {
	// CheckURL is the egress rule for hosts that users configure.
	CheckURL guard.URLCheck
}

// New returns the family.
func New(d Deps) admin.Family {
	return admin.Family{Name: "guardrails", Doc: "Guardrails: checks of requests and responses, and actions on their results.", Routes: (&family{d}).describe().Routes()}
}

type family struct{ Deps }

// item and change are a guardrail and its change.
type (
	item   = admin.Item[guard.Guardrail]
	change = admin.Change[guard.Guardrail]
)

func (f *family) describe() *admin.Collection[guard.Guardrail] {
	return &admin.Collection[guard.Guardrail]{
		Kind: guard.KindGuardrail, Object: "guardrail", Path: "/guardrails", Param: "guardrailId",
		Resource: "guardrails", WriteRole: admin.Manager,
		Slugs:  &admin.Slugs{Prefix: "pg-"},
		Levels: &admin.Levels[guard.Guardrail]{Organisation: "organisation_guardrails", Workspace: "guardrails"},
		List:   admin.List{Paging: admin.Paging{DefaultSize: 100}, Envelope: &admin.TotalEnvelope, IDs: "ids"},
		Fields: []admin.Field{
			admin.NameField(255), admin.SlugField(255),
			{Name: "checks", Type: admin.Any, Required: true, Trigger: true, FormOf: guard.Document, Doc: "The checks.", Check: f.checked},
			{Name: "actions", Type: admin.Any, Required: true, Single: true, Form: actionsSchema, Example: map[string]any{"deny": true}, Doc: "Actions on the result.", Convert: actions},
		},
		Computed: []admin.ComputedField[guard.Guardrail]{
			{Field: admin.Field{Name: "checks", Type: admin.Array, Required: true, Single: true, Form: checksSchema}, Value: func(_ *admin.Call, it item) any { return shownChecks(it.Form) }},
			{Field: admin.Field{Name: "actions", Type: admin.Object, Required: true, Single: true, Form: actionsSchema}, Value: func(_ *admin.Call, it item) any { return shownActions(it.Form) }},
			text("owner_id", false, func(it item) any { return it.CreatedBy }),
			text("updated_by", false, func(it item) any { return it.UpdatedBy }),
			text("version_id", true, func(it item) any { return it.VersionID }),
		},
		Versions: &admin.Versions[guard.Guardrail]{When: func(admin.Values, *change) bool { return true }, Paging: admin.Paging{DefaultSize: 100}},
		Before:   f.before, Retire: retire,
		Created: &admin.Reply{Members: []string{"id", "slug", "version_id"}},
		Updated: &admin.Reply{Members: []string{"id", "slug", "version_id"}},
	}
}

func text(name string, single bool, value func(it item) any) admin.ComputedField[guard.Guardrail] {
	return admin.ComputedField[guard.Guardrail]{Field: admin.Field{Name: name, Type: admin.String, Required: true, Single: single}, Value: func(_ *admin.Call, it item) any { return value(it) }}
}

var (
	feedbackSchema = map[string]any{"type": "object", "properties": map[string]any{"feedback": map[string]any{"type": "object", "properties": map[string]any{
		"value": map[string]any{"type": "integer", "minimum": -10, "maximum": 10}, "weight": map[string]any{"type": "number", "minimum": 0, "maximum": 1}, "metadata": map[string]any{"type": []string{"string", "object"}},
	}}}}
	actionsSchema = admin.Schema{"type": "object", "properties": map[string]any{
		"deny": map[string]any{"type": "boolean", "default": false}, "async": map[string]any{"type": "boolean", "default": false}, "sequential": map[string]any{"type": "boolean", "default": false},
		"soft_deny_200": map[string]any{"type": "boolean", "default": false}, "stream": map[string]any{"enum": []string{"after", "hold", "window"}, "description": "When an output guardrail evaluates a stream. Default: window with deny, otherwise after."},
		"stream_window": map[string]any{"type": "integer", "minimum": guard.MinWindow, "maximum": guard.MaxWindow, "default": guard.StandardWindow},
		"allow_unread":  map[string]any{"type": "array", "maxItems": guard.MaxUnread, "items": map[string]any{"type": "string"}, "description": "Routes with unreadable bodies that are allowed although this guardrail denies: request types such as uploadFile, or path prefixes such as /uploads."},
		"on_success":    feedbackSchema, "on_fail": feedbackSchema,
	}}
	checksSchema = admin.Schema{"type": "array", "items": map[string]any{"type": "object", "required": []string{"id"}, "properties": map[string]any{
		"id": map[string]any{"type": "string"}, "name": map[string]any{"type": "string"}, "is_enabled": map[string]any{"type": "boolean"},
		"parameters": map[string]any{"type": "object", "description": "Secrets are masked."}, "forward_headers": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
	}}}
)

// shownChecks and shownActions are what the client sent. Guardrails from before that was
// stored show the stored form, with all defaults.
func shownChecks(form *guard.Guardrail) any {
	if len(form.Sent.Checks) > 0 {
		return form.Sent.Checks
	}
	return admin.OrEmpty(form.Checks)
}

func shownActions(form *guard.Guardrail) any {
	if len(form.Sent.Actions) > 0 {
		return form.Sent.Actions
	}
	return form.Actions
}

// checked returns all faults of the checks.
func (f *family) checked(raw json.RawMessage) []fault.Detail {
	checks, bad := guard.ParseChecks(raw, f.CheckURL)
	if len(bad) > 0 {
		return bad
	}
	_, _, bad = guard.MaskChecks(checks)
	return bad
}

// actions normalizes the actions, with defaults for omitted ones.
func actions(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	a, bad := guard.ParseActions(raw)
	if len(bad) > 0 {
		return nil, bad
	}
	out, err := json.Marshal(a)
	if err != nil {
		return nil, []fault.Detail{{Message: "cannot be stored"}}
	}
	return out, nil
}

// link stages the references to secrets that checks use, which prevent their deletion.
func link(tx *resource.Tx, by resource.Ref, who hostpin.Caller, was, now []guard.Applied) error {
	return guard.LinkSecrets(func(l provider.Links) error {
		l.By = who
		return provider.LinkSecrets(tx, by, l)
	}, was, now)
}

// before stores the checks in the record: unchanged or, if they contain secrets, sealed with a
// masked copy.
func (f *family) before(c *admin.Call, tx *resource.Tx, ch *change) error {
	if c.Caller.OfOrganisation() && ch.Rec.Scope.Workspace == "" {
		c.AuditAs("organisation_guardrails")
	}
	if c.Body.HasValue("actions") {
		ch.Form.Sent.Actions = c.Body.Raw("actions")
	}
	if !c.Body.HasValue("checks") {
		return nil
	}
	checks, bad := guard.ParseChecks(c.Body.Raw("checks"), f.CheckURL)
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	masked, found, _ := guard.MaskChecks(checks)
	var was []guard.Applied
	if !ch.Creates() {
		was = ch.OldForm.Checks
	}
	if err := link(tx, ch.Rec.Ref(), c.SecretReferences(), was, masked); err != nil {
		return err
	}
	for i := range masked { // with the current marks of the mappings
		if raw, mapped := masked[i].Parameters[guard.MappingsParameter]; mapped {
			checks[i].Parameters[guard.MappingsParameter] = raw
		}
	}
	ch.Form.Checks = masked
	var err error
	if ch.Form.Sent.Checks, err = guard.Echo(c.Body.Raw("checks"), masked); err != nil {
		return fmt.Errorf("guardrails: encode: %w", err)
	}
	var plain []byte
	if found {
		if plain, err = json.Marshal(checks); err != nil {
			return fmt.Errorf("guardrails: encode: %w", err)
		}
	}
	if !found && !ch.Rec.HasSecret(guard.SealedChecks) {
		return nil
	}
	if err := ch.Rec.SetSecret(c.Context, c.Sealer, guard.SealedChecks, plain); err != nil {
		var known *fault.Fault
		if errors.As(err, &known) {
			return err
		}
		return fault.Unavailable(err)
	}
	return nil
}

// retire prevents the deletion of a guardrail that configs or the defaults of a workspace or
// the organization name.
func retire(c *admin.Call, tx *resource.Tx, it item) error {
	if it.Scope.Workspace == "" {
		c.AuditAs("organisation_guardrails")
	}
	at := *c
	at.Scope = it.Scope
	scopes, err := admin.WorkspaceScopes(&at)
	if err != nil {
		return err
	}
	users, err := route.Users(c.Context, c.Resources, scopes, it.Record, func(refs route.Refs) []route.Ref { return refs.Guardrails })
	if err != nil {
		return err
	}
	standing, err := standard(c, scopes, it.Record)
	if err != nil {
		return err
	}
	if err := resource.InUse(it.Ref(), append(users, standing...)); err != nil {
		return err
	}
	return link(tx, it.Ref(), hostpin.Caller{}, it.Form.Checks, nil)
}

// standard returns the workspaces, and the organization, that apply the guardrail to every
// request.
func standard(c *admin.Call, scopes []store.Scope, of *resource.Record) ([]resource.Ref, error) {
	ids := make([]string, len(scopes))
	for i := range scopes {
		ids[i] = scopes[i].Workspace
	}
	recs, err := c.Resources.GetMany(c.Context, c.Organisation(), tenant.KindWorkspace, ids)
	if err != nil {
		return nil, err
	}
	org, ok, err := c.Resources.Get(c.Context, c.Organisation(), tenant.KindOrganisation, c.Scope.Org)
	if err != nil {
		return nil, err
	}
	if ok {
		recs = append(recs, org)
	}
	var out []resource.Ref
	for i := range recs {
		if slices.ContainsFunc(lists(recs[i].Body), func(name string) bool { return name == of.ID || name == of.Slug }) {
			out = append(out, recs[i].Ref())
		}
	}
	return out, nil
}

// lists returns the guardrails that a workspace or an organization names.
func lists(body []byte) []string {
	var form struct {
		Input    []string `json:"input_guardrails"`
		Output   []string `json:"output_guardrails"`
		Defaults struct {
			Input  []string `json:"input_guardrails"`
			Output []string `json:"output_guardrails"`
		} `json:"defaults"`
		Settings struct {
			Input  []string `json:"input_guardrails"`
			Output []string `json:"output_guardrails"`
		} `json:"settings"`
	}
	if json.Unmarshal(body, &form) != nil {
		return nil
	}
	return slices.Concat(form.Input, form.Output, form.Defaults.Input, form.Defaults.Output, form.Settings.Input, form.Settings.Output)
}
