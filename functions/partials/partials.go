// Package partials is the family of partials: text that templates of prompts take
// in, under a slug, with versions of which one is published.
package partials

import (
	"encoding/json"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/prompt"
	"gateway/shared/resource"
)

// item and change are a partial and what happens to it.
type (
	item   = admin.Item[prompt.Partial]
	change = admin.Change[prompt.Partial]
)

// New makes the family.
func New() admin.Family {
	return admin.Family{Name: "partials", Doc: "Partials: reusable text for prompt templates.", Routes: describe().Routes()}
}

func describe() *admin.Collection[prompt.Partial] {
	return &admin.Collection[prompt.Partial]{
		Kind: prompt.KindPartial, Object: "partial", Path: "/prompts/partials", Param: "partialId",
		Scope: "prompts", Resource: "prompt_partials", Level: admin.InWorkspace, WriteRole: admin.Manager,
		Slugs: &admin.Slugs{Prefix: "pp-"}, ArchivedReachable: true,
		List: admin.List{Search: true, Status: true, Match: matches, Query: []admin.Field{
			{Name: "collection_id", Type: admin.String, Max: 255, Doc: "Partials belong to no collection: with this parameter the list is empty."},
		}},
		Fields: []admin.Field{
			admin.NameField(prompt.MaxName), admin.SlugField(255), {Name: "string", Required: true, Single: true, Check: template},
			{Name: "version_description", Single: true},
			{Name: "description", In: "version_description", Hidden: true, UpdateOnly: true, Doc: "Alias of version_description."},
			{Name: "status", Type: admin.String, Enum: []string{"active", resource.StatusArchived}, Column: true, UpdateOnly: true},
		},
		Computed: []admin.ComputedField[prompt.Partial]{
			member("version_id", admin.String, func(it item) any { return it.VersionID }),
			member("version", admin.Integer, func(it item) any { return it.Version }),
			member("prompt_partial_version_id", admin.String, func(it item) any { return it.VersionID }),
			{Field: admin.Field{Name: "collection_id", Type: admin.String, Doc: "Always null: partials are in no collection."}, Value: func(*admin.Call, item) any { return nil }},
		},
		Versions: &admin.Versions[prompt.Partial]{
			Of: []string{"string", "version_description", "description"}, Unversioned: []string{"version_description", "description"},
			Publish: "prompts.publish", Drafted: &admin.Reply{Members: []string{"prompt_partial_version_id"}},
			Computed: []admin.ComputedField[prompt.Partial]{
				member("prompt_partial_id", admin.String, func(it item) any { return it.ID }),
				member("description", admin.String, func(it item) any { return it.Form.Description }),
				member("prompt_version_status", admin.String, func(it item) any { return it.Status }),
			},
		},
		Check: check, Before: before, Retire: retire,
		Created: &admin.Reply{Members: []string{"id", "slug", "version_id"}},
	}
}

// template returns the faults of a text that is not a valid template, in addition to the errors
// of other fields.
func template(raw json.RawMessage) []fault.Detail {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil
	}
	if _, err := prompt.Parse(text); err != nil {
		return []fault.Detail{{Message: err.Error()}}
	}
	return nil
}

func member(name string, t admin.Type, value func(it item) any) admin.ComputedField[prompt.Partial] {
	return admin.ComputedField[prompt.Partial]{Field: admin.Field{Name: name, Type: t, Required: true, Single: true}, Value: func(_ *admin.Call, it item) any { return value(it) }}
}

func matches(c *admin.Call, _ *resource.Row) bool { return c.Query.Text("collection_id") == "" }

func check(c *admin.Call, ch *change) []fault.Detail {
	bad := ch.Form.Validate()
	if c.Body.HasValue("description") && c.Body.HasValue("version_description") {
		bad = append(bad, fault.Detail{Field: "description", Message: "is an alias of version_description: send one of them"})
	}
	return bad
}

// partialsKey is the name under which a call stores that a version includes other partials.
const partialsKey = "a version includes partials"

// before rejects a text that includes a partial which does not exist, or itself. It also
// runs when a version is published.
func before(c *admin.Call, tx *resource.Tx, ch *change) error {
	if ch.Rec.Archived() && ch.Old != nil && !ch.Old.Archived() {
		return unused(c, ch.Rec)
	}
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
	if len(refs) == 0 || ch.Form.String == ch.OldForm.String {
		return nil
	}
	g := prompt.Graph{Resources: c.Resources, Scope: ch.Rec.Scope, Get: tx.Get}
	named, bad, err := g.Check(c.Context, prompt.Node{ID: ch.Rec.ID, Version: ch.Rec.Version, Partials: refs})
	if err != nil {
		return err
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	for i := range named {
		if err := tx.RequireExists(named[i].Ref()); err != nil {
			return err
		}
	}
	return nil
}

// retire prevents the deletion of a partial that is included elsewhere.
func retire(c *admin.Call, _ *resource.Tx, it item) error { return unused(c, it.Record) }

func unused(c *admin.Call, rec *resource.Record) error {
	users, err := prompt.Graph{Resources: c.Resources, Scope: rec.Scope}.Users(c.Context, rec)
	if err != nil {
		return err
	}
	return resource.InUse(rec.Ref(), users)
}
