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
	return admin.Family{Name: "configs", Doc: "Saved configs: routing, retries, caching and guardrails of requests.", Routes: (&family{d}).collection().Routes()}
}

type family struct{ Deps }

// item and change are a config and what happens to it.
type (
	item   = admin.Item[content]
	change = admin.Change[content]
)

func (f *family) collection() *admin.Collection[content] {
	return &admin.Collection[content]{
		Kind: route.KindConfig, Object: "config", Path: "/configs", Param: "slug",
		Scope: "configs", Where: admin.InWorkspace, WriteRole: admin.Manager, ArchivedReachable: true,
		Slugs: &admin.Slugs{Prefix: "pc-"},
		List:  admin.List{Paging: admin.Paging{DefaultSize: 1000}, Envelope: &admin.SuccessEnvelope, Leave: []string{"object"}},
		Fields: []admin.Field{
			admin.NameField(255), admin.SlugField(255),
			{Name: "config", Type: admin.Any, Required: true, Trigger: true, Check: check, Doc: "The config object.", Form: configForm(), Example: map[string]any{"retry": map[string]any{"attempts": 3}}},
			{Name: "isDefault", Type: admin.Integer, Max: 1, Trigger: true, Doc: "1 makes it the workspace's default config, in place of the previous one. It applies to requests that name no config and use a key without a default config."},
			{Name: "status", Enum: []string{"active", resource.StatusArchived}, Column: true, UpdateOnly: true},
		},
		Shown: []admin.Shown[content]{
			shown("config", admin.Field{Type: admin.Object, Open: true, Single: true}, func(it item) any { return it.Form.raw }),
			shown("is_default", admin.Field{Type: admin.Integer}, func(it item) any { return defaultFlag(it.Record) }),
			shown("owner_id", admin.Field{Type: admin.String}, func(it item) any { return it.CreatedBy }),
			shown("updated_by", admin.Field{Type: admin.String}, func(it item) any { return it.UpdatedBy }),
			shown("format", admin.Field{Type: admin.String, Single: true}, func(item) any { return format }),
			shown("type", admin.Field{Type: admin.String, Single: true}, func(item) any { return configType }),
			shown("version_id", admin.Field{Type: admin.String, Single: true}, func(it item) any { return it.VersionID }),
		},
		Versions: &admin.Versions[content]{
			When:   func(in admin.Values, _ *change) bool { return in.Given("config") },
			Paging: admin.Paging{DefaultSize: 1000}, // a config that changed more often is read in pages
			Shown: []admin.Shown[content]{
				shown("config", admin.Field{Form: admin.Schema{"type": "string", "contentMediaType": "application/json"}}, func(it item) any { return string(it.Form.raw) }),
				shown("version", admin.Field{Type: admin.Integer}, func(it item) any { return it.Version }),
			},
		},
		Before: func(c *admin.Call, tx *resource.Tx, ch *change) error {
			ch.Form.raw = ch.Was.raw
			if c.Body.Given("config") {
				if err := f.setContent(c, tx, ch.Rec, ch.Form, c.Body.Raw("config")); err != nil {
					return err
				}
			}
			return setDefault(c, tx, ch.Rec)
		},
		Retire:  func(c *admin.Call, tx *resource.Tx, it item) error { return leaveDefault(c, tx, it.Record) },
		Wrapped: true,
		Created: &admin.Reply{Members: []string{"id", "version_id", "slug"}, Wrapped: true},
		Updated: &admin.Reply{Members: []string{"version_id"}, Wrapped: true},
	}
}

// shown is a member that always has a value.
func shown(name string, f admin.Field, value func(it item) any) admin.Shown[content] {
	f.Name, f.Required = name, true
	return admin.Shown[content]{Field: f, Value: func(_ *admin.Call, it item) any { return value(it) }}
}

// check is the strict reading of a config that is to be saved, compiled to the tree that
// requests walk.
func check(raw json.RawMessage) []fault.Detail {
	cfg, bad := route.Parse(raw, route.Strict)
	if len(bad) == 0 {
		_, bad = cfg.Compile()
	}
	return bad
}

// setContent stores a config in the record: unchanged or, if it contains secrets, sealed with a
// masked copy for display.
func (f *family) setContent(c *admin.Call, tx *resource.Tx, rec *resource.Record, form *content, raw json.RawMessage) error {
	if err := f.references(c, tx, rec, raw); err != nil {
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
