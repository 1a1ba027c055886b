package guardrails

import (
	"encoding/json"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/seal/hostpin"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// retire prevents the deletion of a guardrail that configs or the defaults of a workspace or
// the organisation name.
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

// standard returns the workspaces, and the organisation, that apply the guardrail to every
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

// lists returns the guardrails that a workspace or an organisation names.
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
