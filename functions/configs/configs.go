// Package configs is the family of saved configs: routing objects under a slug,
// with a version for every change of their content.
package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/tenant"
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
	// CheckURL is the egress rule for hosts that users name.
	CheckURL provider.URLCheck
}

// New returns the family.
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
		Scope: "configs", Level: admin.InWorkspace, WriteRole: admin.Manager, ArchivedReachable: true,
		Slugs: &admin.Slugs{Prefix: "pc-"},
		List:  admin.List{Paging: admin.Paging{DefaultSize: 1000}, Envelope: &admin.SuccessEnvelope, Omit: []string{"object"}},
		Fields: []admin.Field{
			admin.NameField(255), admin.SlugField(255),
			{Name: "config", Type: admin.Any, Required: true, Trigger: true, Check: check, Doc: "The config object.", Form: configForm(), Example: map[string]any{"retry": map[string]any{"attempts": 3}}},
			{Name: "isDefault", Type: admin.Integer, Max: 1, Trigger: true, Doc: "1 makes it the workspace's default config, in place of the previous one. It applies to requests that name no config and use a key without a default config."},
			{Name: "status", Enum: []string{"active", resource.StatusArchived}, Column: true, UpdateOnly: true},
		},
		Computed: []admin.ComputedField[content]{
			shown("config", admin.Field{Type: admin.Object, Open: true, Single: true}, func(it item) any { return it.Form.raw }),
			shown("is_default", admin.Field{Type: admin.Integer}, func(it item) any { return defaultFlag(it.Record) }),
			shown("owner_id", admin.Field{Type: admin.String}, func(it item) any { return it.CreatedBy }),
			shown("updated_by", admin.Field{Type: admin.String}, func(it item) any { return it.UpdatedBy }),
			shown("format", admin.Field{Type: admin.String, Single: true}, func(item) any { return format }),
			shown("type", admin.Field{Type: admin.String, Single: true}, func(item) any { return configType }),
			shown("version_id", admin.Field{Type: admin.String, Single: true}, func(it item) any { return it.VersionID }),
		},
		Versions: &admin.Versions[content]{
			When:   func(in admin.Values, _ *change) bool { return in.HasValue("config") },
			Paging: admin.Paging{DefaultSize: 1000}, // a config that changed more often is read in pages
			Computed: []admin.ComputedField[content]{
				shown("config", admin.Field{Form: admin.Schema{"type": "string", "contentMediaType": "application/json"}}, func(it item) any { return string(it.Form.raw) }),
				shown("version", admin.Field{Type: admin.Integer}, func(it item) any { return it.Version }),
			},
		},
		Before: func(c *admin.Call, tx *resource.Tx, ch *change) error {
			ch.Form.raw = ch.OldForm.raw
			if c.Body.HasValue("config") {
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

// shown is a field that always has a value.
func shown(name string, f admin.Field, value func(it item) any) admin.ComputedField[content] {
	f.Name, f.Required = name, true
	return admin.ComputedField[content]{Field: f, Value: func(_ *admin.Call, it item) any { return value(it) }}
}

// check reads a config that is to be saved strictly, and compiles it to the tree that requests
// use. It returns the faults of both.
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

// isDefault is the list field of the workspace's default config. Requests find
// it through the workspace, which names it too.
const isDefault = "is_default"

// defaultFlag is 1 for the default config of its workspace, else 0.
func defaultFlag(rec *resource.Record) int { return admin.Flag(rec.Fields[isDefault] == "1") }

// setDefault sets or clears the config as the workspace's default. An archived config cannot be
// the default.
func setDefault(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	wanted := c.Body.HasValue("isDefault") && c.Body.Int("isDefault") == 1
	switch {
	case wanted && rec.Archived():
		return fault.Invalid("isDefault", "cannot be 1 for an archived config")
	case wanted:
		return becomeDefault(c, tx, rec)
	case c.Body.Has("isDefault") || rec.Archived():
		return leaveDefault(c, tx, rec)
	}
	return nil
}

// becomeDefault makes the config the workspace's default in place of the previous one.
func becomeDefault(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	was := ""
	err := ofWorkspace(c, tx, func(w *tenant.Workspace) { was, w.DefaultConfig = w.DefaultConfig, rec.ID })
	if err != nil {
		return err
	}
	if was != "" && was != rec.ID {
		old, ok, err := tx.Get(c.Scope, route.KindConfig, was)
		if err != nil {
			return err
		}
		if ok {
			delete(old.Fields, isDefault)
			if err := tx.Update(&old); err != nil {
				return err
			}
		}
	}
	if rec.Fields == nil {
		rec.Fields = make(map[string]string, 1)
	}
	rec.Fields[isDefault] = "1"
	return nil
}

// leaveDefault leaves the workspace without a default if the config was it.
func leaveDefault(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	if defaultFlag(rec) == 0 {
		return nil
	}
	delete(rec.Fields, isDefault)
	return ofWorkspace(c, tx, func(w *tenant.Workspace) {
		if w.DefaultConfig == rec.ID {
			w.DefaultConfig = ""
		}
	})
}

// ofWorkspace changes the workspace of the call in the transaction.
func ofWorkspace(c *admin.Call, tx *resource.Tx, change func(w *tenant.Workspace)) error {
	ok, err := admin.Amend(tx, c.Organisation(), tenant.KindWorkspace, c.Scope.Workspace, change)
	if err == nil && !ok {
		return admin.Denied()
	}
	return err
}

// sealedConfig is the name under which a config with secrets is sealed; its body is then the
// masked copy. Routing reads resource.Record.OpenSecrets(...)[sealedConfig] if HasSecret is
// set.
const sealedConfig = route.SealedConfig

// secretFields are the fields of a target that hold credentials: those of all
// providers, under all their names.
var secretFields = func() map[string]bool {
	names := map[string]bool{"api_key": true, "custom_headers": true}
	for _, p := range provider.All() {
		for _, f := range p.Fields {
			if !f.Secret {
				continue
			}
			names[f.Name] = true
			for _, alias := range f.Aliases {
				names[alias] = true
			}
		}
	}
	return names
}()

// hookFields are the fields of a target with checks that may contain vendor credentials,
// recognizable only by their field names.
var hookFields = map[string]bool{
	"input_guardrails": true, "output_guardrails": true, "before_request_hooks": true, "after_request_hooks": true,
	"inputGuardrails": true, "outputGuardrails": true, "beforeRequestHooks": true, "afterRequestHooks": true,
	"input_mutators": true, "output_mutators": true, "inputMutators": true, "outputMutators": true,
}

// maskSecrets returns a copy of a config to store and show, with its secrets masked, and whether
// it has any. A config without secrets is returned unchanged. A secret that is masked already is
// rejected: the mask would be stored as the secret.
func maskSecrets(raw json.RawMessage) (masked json.RawMessage, found bool, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil {
		return nil, false, fault.Invalid("config", "must be a JSON object")
	}
	m := &masker{}
	m.node(root, "config")
	if f := fault.Invalids(m.Bad); f != nil {
		return nil, false, f
	}
	if !m.Found {
		return raw, false, nil
	}
	masked, err = json.Marshal(root)
	return masked, true, err
}

type masker struct {
	audit.Texts
}

// node masks the secrets of the root or a target, and of the targets below.
func (m *masker) node(n map[string]any, path string) {
	for key, v := range n {
		at := path + "." + key
		switch {
		case secretFields[key]:
			n[key] = m.Mask(v, at)
		case hookFields[key]:
			n[key] = m.hook(v, at)
		case key == "targets":
			list, _ := v.([]any)
			for i, e := range list {
				if t, ok := e.(map[string]any); ok {
					m.node(t, at+"["+strconv.Itoa(i)+"]")
				}
			}
		}
	}
}

// hook masks fields below v that have the name of a secret.
func (m *masker) hook(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if audit.SecretName(k) {
				v[k] = m.Mask(e, path+"."+k)
			} else {
				v[k] = m.hook(e, path+"."+k)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = m.hook(e, path+"["+strconv.Itoa(i)+"]")
		}
	}
	return v
}
