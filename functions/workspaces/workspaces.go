// Package workspaces is the family of workspaces: create, list, read, change and
// delete, which archives.
package workspaces

import (
	"fmt"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// kindGuardrail is the kind of guardrails, of the workspace or the organization.
const kindGuardrail resource.Kind = "GUARDRAIL"

// Deps is what the family works with.
type Deps struct {
	Ledger *ledger.Ledger
	// Dependents are the kinds that optional parts of the product add to workspaces.
	Dependents []resource.Dependent
}

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.workspaces = f.describe()
	f.members = f.describeMembers()
	routes := append(f.workspaces.Routes(), f.deleteRoute())
	return admin.Family{Name: "workspaces", Doc: "Workspaces: the units of isolation.", Routes: append(append(routes, f.members.Routes()...), f.addRoute())}
}

type family struct {
	Deps
	workspaces *admin.Collection[tenant.Workspace]
	members    *admin.Collection[membership.Membership]
}

// item and change are a workspace and what happens to it.
type (
	item   = admin.Item[tenant.Workspace]
	change = admin.Change[tenant.Workspace]
)

func (f *family) describe() *admin.Collection[tenant.Workspace] {
	return &admin.Collection[tenant.Workspace]{
		Kind: tenant.KindWorkspace, Object: "workspace", Path: "/admin/workspaces", Aliases: []string{"/workspaces"},
		Scope: "workspaces", Level: admin.Shared, WriteRole: admin.Admin,
		Slugs: &admin.Slugs{Prefix: "ws-"}, Excluded: []string{"delete"}, // see deleteRoute
		Adjust: func(action string, r *admin.Route) {
			if action == "create" {
				r.Level, r.Named = admin.InOrganisation, map[string]string{"name_format": "plain"}
			}
		},
		Authorize: func(c *admin.Call, _ string, row *resource.Row) bool {
			return c.Caller.OfOrganisation() || c.Caller.MayAccess(row.ID) && row.Status != resource.StatusArchived
		},
		List: admin.List{Status: true, Match: matches, Query: []admin.Field{
			{Name: "name", Type: admin.String, Max: tenant.MaxName, Doc: "Part of the name, case-sensitive."},
			{Name: "exact_name", Type: admin.String, Max: tenant.MaxName, Doc: "The full name."},
			{Name: "name_format", Type: admin.String, Enum: []string{"display", "plain"}, Default: "plain", Doc: "display puts the icon before the names."},
		}},
		ReadQuery: []admin.Field{{Name: "name_format", Type: admin.String, Enum: []string{"display", "plain"}, Default: "display", Doc: "display adds the icon to the name."}},
		Fields: []admin.Field{
			{Name: "name", Required: true, Min: 1, Max: tenant.MaxName + 1 + 32, Column: true, Doc: "At most 255 characters, without the icon that reads show before it."},
			{Name: "description", Absent: ""},
			{Name: "icon", Absent: "", Doc: "An emoji; empty removes it."},
			{Name: "defaults", Merge: true, Open: true, Doc: "Defaults of every request of the workspace."},
			{Name: "users", Type: admin.Array, Of: &admin.Field{Type: admin.String, Min: 1, Max: 64, Reference: "/admin/users"}, Max: maxFirst, CreateOnly: true, Trigger: true, Doc: "Ids of the organization's users that become its admins."},
		},
		Limits: &admin.Limits[tenant.Workspace]{
			Ledger: f.Ledger, Place: ledger.OnWorkspace,
			Budgets: func(w *tenant.Workspace) *[]ledger.UsageLimit { return &w.UsageLimits },
			Subject: func(it item) *ledger.Subject {
				return tenant.WorkspaceSubject(inside(it.Record), it.Name, it.Rev, it.Form)
			},
		},
		Computed: []admin.ComputedField[tenant.Workspace]{
			{Field: admin.Field{Name: "name", Type: admin.String, Required: true}, Value: displayName},
			{Field: admin.Field{Name: "is_default", Type: admin.Integer, Required: true}, Value: func(_ *admin.Call, it item) any { return admin.Flag(it.Form.IsDefault) }},
			{Field: admin.Field{Name: "defaults", Type: admin.Object, Required: true, Open: true}, Value: shownDefaults},
			{Field: usersField},
		},
		Check: func(_ *admin.Call, ch *change) []fault.Detail {
			if ch.Old != nil && ch.Rec.Name == withIcon(ch.Old.Name, ch.OldForm.Icon) {
				ch.Rec.Name = ch.Old.Name // a read is sent back
			}
			return ch.Form.Validate(ch.Rec.Name)
		},
		Before: func(c *admin.Call, tx *resource.Tx, ch *change) error {
			if err := checkMetadata(c, tx, ch); err != nil {
				return err
			}
			if err := checkGuardrails(tx, ch); err != nil {
				return err
			}
			return useConfig(tx, ch.Rec, ch.OldForm.Defaults.UserAPIKeyConfig, ch.Form)
		},
		After: func(c *admin.Call, tx *resource.Tx, ch *change) error {
			if !ch.Creates() {
				return nil
			}
			if err := f.startWith(c, tx, ch); err != nil {
				return err
			}
			return openDefaults(c, tx, ch.Rec)
		},
		Decorate: showUsers,
		Created:  &admin.Reply{},
	}
}

// checkMetadata checks the metadata of a workspace against the organization's schema, when the
// workspace is made or its metadata changes. A new workspace gets the default values.
func checkMetadata(c *admin.Call, tx *resource.Tx, ch *change) error {
	defaults, _ := c.Body.Object("defaults")
	if !ch.Creates() && !defaults.Has("metadata") && !c.Body.Null("defaults") {
		return nil
	}
	org, err := tenant.ReadSettings(tx, c.Organisation())
	if err != nil {
		return err
	}
	schema, metadata := org.Settings.WorkspaceMetadata, &ch.Form.Defaults.Metadata
	if ch.Creates() {
		*metadata = schema.Complete(*metadata)
	}
	if refused := fault.Invalids(schema.Check("defaults.metadata", *metadata)); refused != nil {
		return refused
	}
	return nil
}

func matches(c *admin.Call, row *resource.Row) bool {
	return (!c.Query.HasValue("name") || strings.Contains(row.Name, c.Query.Text("name"))) &&
		(!c.Query.HasValue("exact_name") || row.Name == c.Query.Text("exact_name"))
}

func displayName(c *admin.Call, it item) any {
	format := c.Query.Text("name_format")
	if c.Route.Name == "getWorkspace" && format != "plain" || c.Route.Name == "listWorkspaces" && format == "display" {
		return withIcon(it.Name, it.Form.Icon)
	}
	return it.Name
}

// withIcon returns the name as reads of one workspace show it.
func withIcon(name, icon string) string {
	if icon == "" {
		return name
	}
	return icon + " " + name
}

func shownDefaults(_ *admin.Call, it item) any {
	d := it.Form.Defaults
	return map[string]any{
		"metadata": admin.OrEmptyMap(d.Metadata), "input_guardrails": admin.OrEmpty(d.InputGuardrails), "output_guardrails": admin.OrEmpty(d.OutputGuardrails),
		"user_api_key_config": admin.OrNull(d.UserAPIKeyConfig), "is_default": admin.Flag(it.Form.IsDefault), "object": "workspace",
	}
}

// checkGuardrails rejects new entries of the lists unless they name a guardrail of the
// workspace or the organization.
func checkGuardrails(tx *resource.Tx, ch *change) error {
	var bad []fault.Detail
	for field, lists := range map[string][2][]string{
		"defaults.input_guardrails":  {ch.OldForm.Defaults.InputGuardrails, ch.Form.Defaults.InputGuardrails},
		"defaults.output_guardrails": {ch.OldForm.Defaults.OutputGuardrails, ch.Form.Defaults.OutputGuardrails},
	} {
		for i, ref := range lists[1] {
			if slices.Contains(lists[0], ref) {
				continue
			}
			found, err := admin.Exists(tx, kindGuardrail, ref, inside(ch.Rec), ch.Rec.Scope)
			if err != nil {
				return err
			}
			if !found {
				bad = append(bad, fault.Detail{Field: fmt.Sprintf("%s[%d]", field, i), Message: "must name a guardrail of the workspace or the organization"})
			}
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return nil
}

// inside is the scope of the resources of a workspace.
func inside(rec *resource.Record) store.Scope {
	return store.Scope{Org: rec.Scope.Org, Workspace: rec.ID}
}

// useConfig checks that the default config belongs to the workspace, stores its slug, and
// prevents its deletion.
func useConfig(tx *resource.Tx, rec *resource.Record, was string, w *tenant.Workspace) error {
	ref := &w.Defaults.UserAPIKeyConfig
	if *ref == was {
		return nil
	}
	cfg, err := admin.AddReference(tx, rec.Ref(), inside(rec), route.KindConfig, "defaults.user_api_key_config", was, *ref)
	*ref = cfg.Slug
	return err
}

// openDefaults gives a new workspace its providers.
func openDefaults(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	return provider.OpenDefaults(tx, c.Resources, rec, len(c.Body.Texts("users"))) // members of the new workspace take rows as well
}
