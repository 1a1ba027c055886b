// Package configs is the family of saved configs: routing objects under a slug,
// with a version for every change of their content.
package configs

import (
	"encoding/json"
	"errors"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
)

// Values that answers show for every config.
const (
	format     = "json"
	configType = "ORG_CONFIG"
)

// content is the stored form: the config's JSON itself, with secrets masked.
type content struct{ raw json.RawMessage }

// MarshalJSON and UnmarshalJSON keep the config as it is.
func (c content) MarshalJSON() ([]byte, error) {
	if len(c.raw) == 0 {
		return []byte("{}"), nil
	}
	return c.raw, nil
}

func (c *content) UnmarshalJSON(b []byte) error {
	c.raw = append(json.RawMessage(nil), b...)
	return nil
}

// Deps is what the family works with.
type Deps struct {
	// CheckURL is the egress rule for hosts that people name.
	CheckURL provider.URLCheck
}

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.col = f.collection()
	return admin.Family{Name: "configs", Doc: "Saved configs: routing, retries, caching and guardrails of requests.",
		Routes: append(f.col.Routes(), f.versions())}
}

type family struct {
	Deps
	col *admin.Collection[content]
}

func (f *family) collection() *admin.Collection[content] {
	return &admin.Collection[content]{
		Kind: route.KindConfig, Object: "config", Path: "/configs", Param: "slug",
		Scope: "configs", Where: admin.InWorkspace, WriteRole: admin.Manager,
		Missing: fault.NotAllowed, ArchivedReachable: true,
		Slugs: &admin.Slugs{Prefix: "pc-"}, KeepVersions: true,
		Versioned: func(in admin.Values) bool { return in.Given("config") },
		List: admin.List{
			Paging: admin.Paging{DefaultSize: 1000}, Envelope: listEnvelope, Schema: admin.SuccessListSchema,
			Brief: brief,
		},
		Fields: []admin.Field{
			{Name: "name", Type: admin.String, Required: true, Min: 1, Max: 255, Column: true},
			{Name: "config", Type: admin.Any, Required: true, Trigger: true, Check: check, Doc: "The config object."},
			{Name: "isDefault", Type: admin.Integer, Max: 1, Trigger: true, Doc: "1 makes it the workspace's default config in place of another: requests go by it that name no config, and whose key has no default of its own."},
			{Name: "status", Type: admin.String, Enum: []string{"active", resource.StatusArchived}, Column: true, UpdateOnly: true},
		},
		ExtraShown: []admin.Field{
			{Name: "config", Type: admin.Object, Open: true}, {Name: "is_default", Type: admin.Integer, Max: 1},
			{Name: "owner_id", Type: admin.String}, {Name: "updated_by", Type: admin.String},
			{Name: "format", Type: admin.String}, {Name: "type", Type: admin.String}, {Name: "version_id", Type: admin.String},
		},
		BeforeCreate: func(c *admin.Call, tx *resource.Tx, rec *resource.Record, form *content) error {
			if err := f.setContent(c, rec, form, c.Body.Raw("config")); err != nil {
				return err
			}
			return setDefault(c, tx, rec)
		},
		BeforeUpdate: func(c *admin.Call, tx *resource.Tx, _, rec *resource.Record, was, form *content) error {
			form.raw = was.raw
			if c.Body.Given("config") {
				if err := f.setContent(c, rec, form, c.Body.Raw("config")); err != nil {
					return err
				}
			}
			return setDefault(c, tx, rec)
		},
		BeforeDelete: func(c *admin.Call, tx *resource.Tx, rec *resource.Record, _ *content) error {
			return leaveDefault(c, tx, rec)
		},
		Render: render,
		Single: func(o map[string]any) any { return map[string]any{"success": true, "data": o} },
		Created: func(_ *admin.Call, rec *resource.Record, _ *content) (any, error) {
			return success(map[string]any{"id": rec.ID, "version_id": rec.VersionID, "slug": rec.Slug}), nil
		},
		Updated: func(_ *admin.Call, rec *resource.Record, _ *content) (any, error) {
			return success(map[string]any{"version_id": rec.VersionID}), nil
		},
		CreatedSchema: admin.SuccessSchema(admin.ObjectSchema(map[string]admin.Schema{
			"id": {"type": "string"}, "version_id": {"type": "string"}, "slug": {"type": "string"}})),
		UpdatedSchema: admin.SuccessSchema(admin.ObjectSchema(map[string]admin.Schema{"version_id": {"type": "string"}})),
	}
}

func success(data any) map[string]any { return map[string]any{"success": true, "data": data} }

// listEnvelope tells the total too, so that a list that goes on is noticed.
func listEnvelope(entries []any, total int, _ admin.Page) any {
	out := success(entries)
	out["total"] = total
	return out
}

// check is the strict reading of a config that is saved, compiled to the tree
// that requests walk.
func check(raw json.RawMessage) []fault.Detail {
	cfg, bad := route.Parse(raw, route.Strict)
	if len(bad) == 0 {
		_, bad = cfg.Compile()
	}
	return bad
}

func render(_ *admin.Call, rec *resource.Record, form *content) (map[string]any, error) {
	o := map[string]any{
		"id": rec.ID, "name": rec.Name, "slug": rec.Slug, "status": rec.Status, "object": "config",
		"organisation_id": rec.Scope.Org, "workspace_id": rec.Scope.Workspace, "is_default": defaultFlag(rec),
		"owner_id": rec.CreatedBy, "updated_by": rec.UpdatedBy,
		"created_at": admin.FormatTime(rec.Created), "last_updated_at": admin.FormatTime(rec.Updated),
		"config": form.raw, "format": format, "type": configType, "version_id": rec.VersionID,
	}
	return o, nil
}

// brief is an entry of the list: the record without its content.
func brief(o map[string]any) map[string]any {
	for _, k := range []string{"config", "format", "type", "version_id", "object"} {
		delete(o, k)
	}
	return o
}

// setContent puts a config into the record: as it is, or when it holds secrets
// sealed as a whole, with a masked copy to show.
func (f *family) setContent(c *admin.Call, rec *resource.Record, form *content, raw json.RawMessage) error {
	if err := f.references(c, raw); err != nil {
		return err
	}
	masked, found, err := maskSecrets(raw)
	if err != nil {
		return err
	}
	form.raw = masked
	var plain []byte
	if found {
		plain = raw
	}
	if !found && !rec.HasSecret(sealedConfig) {
		return nil
	}
	if err := rec.SetSecret(c.Context, c.Sealer, sealedConfig, plain); err != nil {
		var f *fault.Fault
		if errors.As(err, &f) {
			return err
		}
		return fault.Unavailable(err)
	}
	return nil
}

// versionPaging: a config that changed more often is read in pages.
var versionPaging = admin.Paging{DefaultSize: 1000}

// versions is GET /configs/{slug}/versions.
func (f *family) versions() admin.Route {
	entry := admin.ObjectSchema(map[string]admin.Schema{
		"id": {"type": "string"}, "name": {"type": "string"}, "slug": {"type": "string"}, "config": {"type": "string", "contentMediaType": "application/json"},
		"format": {"type": "string"}, "type": {"type": "string"}, "version_id": {"type": "string"}, "version": {"type": "integer"}, "object": {"type": "string"},
	})
	return admin.Route{
		Method: "GET", Path: "/configs/{slug}/versions", Name: "listConfigVersions", Doc: "List the versions of a config, newest first.",
		Scopes: []string{"configs.read"}, Where: admin.InWorkspace,
		Query: versionPaging.Fields(), Answer: admin.ListSchema(entry), Do: f.listVersions,
	}
}

func (f *family) listVersions(c *admin.Call) (any, error) {
	page, err := versionPaging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	rec, _, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	all, err := c.Resources.Versions(c.Context, c.Scope, route.KindConfig, rec.ID)
	if err != nil {
		return nil, err
	}
	entries := make([]any, 0, len(all))
	for _, v := range admin.Cut(all, page) {
		o, err := render(c, &v, &content{raw: v.Body})
		if err != nil {
			return nil, err
		}
		o["config"], o["version"] = string(v.Body), v.Version
		o["name"], o["slug"], o["status"], o["is_default"] = rec.Name, rec.Slug, rec.Status, defaultFlag(&rec)
		entries = append(entries, o)
	}
	return admin.ListEnvelope(entries, len(all), page), nil
}
