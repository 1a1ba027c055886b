// Package prompts is the family of saved prompts: templates under a slug, with
// versions of which one is published, labels, sharing and forks.
package prompts

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/guard/expect"
	"gateway/shared/prompt"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
)

// New makes the family.
func New() admin.Family {
	f := &family{}
	f.prompts = f.describe()
	f.experiments = f.describeExperiments()
	routes := slices.Concat(f.prompts.Routes(), f.sharing(), f.experiments.Routes(), f.experimentRoutes())
	return admin.Family{Name: "prompts", Doc: "Saved prompts: templates with versions, labels, sharing, forks, experiments.", Routes: routes}
}

type family struct {
	prompts     *admin.Collection[prompt.Prompt]
	experiments *admin.Collection[prompt.Experiment]
}

// item and change are a prompt and what happens to it.
type (
	item   = admin.Item[prompt.Prompt]
	change = admin.Change[prompt.Prompt]
)

// content are the fields that versions have; details are those of them that make no version
// when they change alone.
var (
	content = []string{"string", "parameters", "model", "functions", "tools", "tool_choice", "template_metadata", "prompt_metadata", "is_raw_template", "virtual_key", "version_description"}
	details = []string{"virtual_key", "version_description"}
)

var slugs = admin.Slugs{Prefix: "pp-"}

func (f *family) describe() *admin.Collection[prompt.Prompt] {
	return &admin.Collection[prompt.Prompt]{
		Kind: prompt.KindPrompt, Object: "prompt", Path: "/prompts", Param: "promptId",
		Scope: "prompts", Level: admin.InWorkspace, WriteRole: admin.Manager,
		Slugs: &slugs, WorkspaceFields: map[string]resource.Kind{"collection_id": prompt.KindCollection},
		List: admin.List{Envelope: &admin.TotalEnvelope, Search: true, Match: matches, Query: []admin.Field{
			{Name: "collection_id", Type: admin.String, Max: 255, Doc: "Only those of this collection, by id or slug."},
			{Name: "type", Type: admin.String, Enum: []string{"shared"}, Doc: "shared lists prompts that other workspaces share with this one."},
			showShare,
		}},
		ReadQuery: []admin.Field{showShare},
		Fields:    fields(), Computed: shown(), Decorate: f.decorate,
		Versions: &admin.Versions[prompt.Prompt]{
			Of: content, Unversioned: details, Combined: []string{"string", "parameters", "model", "virtual_key"}, Patch: true,
			Publish: "prompts.publish", Labels: prompt.KindLabel, Computed: entry(), CheckPublish: f.checkTested,
			Drafted: &admin.Reply{Members: []string{"id", "slug", "prompt_version_id"}},
		},
		Admit: f.admit, ListScopes: across, Check: check, Before: f.before, Retire: f.retire,
		Created: &admin.Reply{Members: []string{"id", "slug", "version_id", "object"}},
	}
}

func fields() []admin.Field {
	of := func(name string) admin.Field { return admin.Field{Name: name, Single: true} }
	text, parameters, key := of("string"), of("parameters"), of("virtual_key")
	text.Required, parameters.Required, key.Required = true, true, true
	key.Reference = "/providers"
	text.Check = template
	parameters.Absent, parameters.NullIsAbsent = map[string]any{}, true
	raw := of("is_raw_template")
	raw.Type, raw.Convert, raw.Absent = admin.Any, zeroOrOne, 0
	raw.Form = admin.Schema{"type": []string{"integer", "boolean", "null"}, "minimum": 0, "maximum": 1}
	description, alias := of("version_description"), of("prompt_metadata")
	description.Hidden = true
	alias.In, alias.Hidden, alias.UpdateOnly = "template_metadata", true, true
	alias.Doc = "Alias of template_metadata."
	return append([]admin.Field{
		admin.NameField(prompt.MaxName), slugField(), {Name: "collection_id", NullIsAbsent: true, Reference: "/collections", Doc: "Id or slug; the default collection of the workspace when absent."},
		text, parameters, key, {Name: "model"}, of("functions"), of("tools"), of("tool_choice"), of("template_metadata"), alias, raw, description,
	}, testFields()...)
}

// slugField is the slug of a prompt, which must not be the path of the partials.
func slugField() admin.Field {
	f := admin.SlugField(255)
	f.Check = func(raw json.RawMessage) []fault.Detail {
		if string(raw) == `"partials"` {
			return []fault.Detail{{Message: "must not be partials, whose path is /prompts/partials"}}
		}
		return nil
	}
	return f
}

// template returns the faults of a text that is not a valid template for any kind of prompt, in
// addition to the errors of other fields.
func template(raw json.RawMessage) []fault.Detail {
	var p prompt.Prompt
	if json.Unmarshal(raw, &p.String) != nil || p.String == "" {
		return nil
	}
	_, bad := p.Compile()
	if p.Raw = 1; len(bad) > 0 {
		if _, asRaw := p.Compile(); len(asRaw) == 0 {
			return nil
		}
	}
	for i := range bad {
		bad[i].Field = strings.TrimPrefix(strings.TrimPrefix(bad[i].Field, "string"), ".")
	}
	return bad
}

// zeroOrOne takes truth values too.
func zeroOrOne(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
	switch string(raw) {
	case "true", "1":
		return json.RawMessage("1"), nil
	case "false", "0":
		return json.RawMessage("0"), nil
	}
	return nil, []fault.Detail{{Message: "must be 0 or 1"}}
}

// one is a field of single reads that always has a value.
func one(name string, t admin.Type, value func(it item) any) admin.ComputedField[prompt.Prompt] {
	return admin.ComputedField[prompt.Prompt]{Field: admin.Field{Name: name, Type: t, Required: true, Single: true}, Value: func(_ *admin.Call, it item) any { return value(it) }}
}

func shown() []admin.ComputedField[prompt.Prompt] {
	description := one("prompt_version_description", admin.String, func(it item) any { return admin.OrNull(it.Form.Description) })
	description.Required = false
	return []admin.ComputedField[prompt.Prompt]{
		one("version_id", admin.String, func(it item) any { return it.VersionID }),
		one("prompt_version", admin.Integer, func(it item) any { return it.Version }),
		one("prompt_version_id", admin.String, func(it item) any { return it.VersionID }),
		one("prompt_version_status", admin.String, func(it item) any { return it.Status }),
		description,
		{Field: admin.Field{Name: "prompt_version_label_id", Type: admin.String, Single: true, Doc: "Label of the version; null without one."}, Value: labelOf},
		{Field: admin.Field{Name: "prompt_version_label_ids", Type: admin.Array, Of: &admin.Field{Type: admin.String}, Required: true, Single: true, Doc: "All labels of the version."},
			Value: func(c *admin.Call, it item) any { return labels(c, it) }},
		{Field: admin.Field{Name: "prompt_share", Type: admin.Object, Optional: true, Doc: "With show_prompt_share: the other workspaces that see the prompt; null: none.", Form: shareSchema}},
	}
}

// entry are the fields of versions in their list.
func entry() []admin.ComputedField[prompt.Prompt] {
	description := one("prompt_description", admin.String, func(it item) any { return admin.OrNull(it.Form.Description) })
	description.Required = false
	return []admin.ComputedField[prompt.Prompt]{
		one("id", admin.String, func(it item) any { return it.VersionID }),
		one("prompt_id", admin.String, func(it item) any { return it.ID }),
		one("prompt_template", admin.String, func(it item) any { return it.Form.String }),
		description,
		{Field: admin.Field{Name: "label_id", Type: admin.String, Doc: "Label of the version; null without one."}, Value: labelOf},
	}
}

// labels are those of the version that are still there.
func labels(c *admin.Call, it item) []string {
	out := []string{}
	known, _ := c.Value(labelsKey).(map[string]bool)
	for _, id := range admin.LabelsOf(it.Record) {
		if known[id] {
			out = append(out, id)
		}
	}
	return out
}

func labelOf(c *admin.Call, it item) any {
	if all := labels(c, it); len(all) > 0 {
		return all[0]
	}
	return nil
}

func check(c *admin.Call, ch *change) []fault.Detail {
	bad := append(ch.Form.Validate(), expect.Validate("tests", ch.Form.Tests)...)
	if c.Body.HasValue("prompt_metadata") && c.Body.HasValue("template_metadata") {
		bad = append(bad, fault.Detail{Field: "prompt_metadata", Message: "is an alias of template_metadata: send one of them"})
	}
	return bad
}

// retire prevents the deletion of a prompt that other workspaces see or that configs name. If
// it is not shared, only configs of its own workspace can name it.
func (f *family) retire(c *admin.Call, tx *resource.Tx, it item) error {
	_, shared, err := tx.Get(it.Scope.Organisation(), prompt.KindShare, it.ID)
	if err != nil {
		return err
	}
	if shared {
		return fault.New(fault.Conflict, "", "this prompt is shared with other workspaces; end the sharing first")
	}
	users, err := route.Users(c.Context, c.Resources, []store.Scope{it.Scope}, it.Record, func(refs route.Refs) []route.Ref { return refs.Prompts })
	if err != nil {
		return err
	}
	return resource.InUse(it.Ref(), users)
}

// Names of values that a call stores for its hooks.
const (
	collectionKey = "collection of the list"
	partialsKey   = "a version includes partials"
)

// before puts ids and slugs in place of the names that were sent, and rejects what
// does not exist; all at once. It runs for the new version of an update and for the
// record.
func (f *family) before(c *admin.Call, tx *resource.Tx, ch *change) error {
	var bad []fault.Detail
	if id, ok := c.Value(defaultKey).(string); ok && ch.Creates() && ch.Form.CollectionID == "" {
		ch.Form.CollectionID = id
	}
	if ch.Form.CollectionID != ch.OldForm.CollectionID {
		rec, ok, err := tx.Get(ch.Rec.Scope, prompt.KindCollection, ch.Form.CollectionID)
		if err != nil {
			return err
		}
		if ok && !rec.Archived() {
			ch.Form.CollectionID = rec.ID
			if err := tx.RequireExists(rec.Ref()); err != nil {
				return err
			}
		} else {
			bad = append(bad, fault.Detail{Field: "collection_id", Message: "must name a collection of this workspace"})
		}
	}
	wrong, err := f.provider(tx, ch)
	if err != nil {
		return err
	}
	bad = append(bad, wrong...)
	if wrong, err = partials(c, tx, ch); err != nil {
		return err
	}
	if refused := fault.Invalids(append(bad, wrong...)); refused != nil {
		return refused
	}
	note(tx, ch)
	return nil
}

// note stores the fields that lists filter by.
func note(tx *resource.Tx, ch *change) {
	if ch.Rec.Fields == nil {
		ch.Rec.Fields = map[string]string{}
	}
	ch.Rec.Fields[prompt.FieldCollection] = ch.Form.CollectionID
	ch.Rec.Fields[prompt.FieldProvider] = ch.Form.VirtualKey
	ch.Rec.Fields[prompt.FieldUpdated] = strconv.FormatInt(tx.Now().UnixMilli(), 10)
}

// provider stores the slug of the saved provider.
func (f *family) provider(tx *resource.Tx, ch *change) ([]fault.Detail, error) {
	if ch.Form.VirtualKey == ch.OldForm.VirtualKey {
		return nil, nil
	}
	rec, ok, err := tx.Get(ch.Rec.Scope, provider.KindProvider, strings.TrimPrefix(ch.Form.VirtualKey, "@"))
	if err != nil {
		return nil, err
	}
	if !ok || rec.Archived() {
		return []fault.Detail{{Field: "virtual_key", Message: "must name a saved provider of this workspace: " + fault.Clip(ch.Form.VirtualKey, 100)}}, nil
	}
	ch.Form.VirtualKey = rec.Slug
	return nil, tx.RequireExists(rec.Ref())
}

// partials makes sure that the template takes in what exists.
func partials(c *admin.Call, tx *resource.Tx, ch *change) ([]fault.Detail, error) {
	refs := ch.Form.Partials()
	if len(refs) > 0 {
		c.SetValue(partialsKey, true)
	}
	if c.Value(partialsKey) == true {
		if ch.Rec.Fields == nil {
			ch.Rec.Fields = map[string]string{}
		}
		ch.Rec.Fields[prompt.FieldPartials] = "1"
	}
	if ch.Form.String == ch.OldForm.String || len(refs) == 0 {
		return nil, nil
	}
	g := prompt.Graph{Resources: c.Resources, Scope: ch.Rec.Scope, Get: tx.Get}
	named, bad, err := g.Check(c.Context, prompt.Node{Partials: refs})
	if err != nil || len(bad) > 0 {
		return bad, err
	}
	for i := range named {
		if err := tx.RequireExists(named[i].Ref()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// matches selects the prompts of a list.
func matches(c *admin.Call, row *resource.Row) bool {
	if shared, ok := c.Value(sharedKey).(map[string]bool); ok && !shared[row.ID] {
		return false
	}
	of, _ := c.Value(collectionKey).(string)
	return !c.Query.HasValue("collection_id") || row.Fields[prompt.FieldCollection] == of
}
