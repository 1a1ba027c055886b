package prompts

import (
	"encoding/json"
	"fmt"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/prompt"
	"gateway/shared/resource"
	"gateway/shared/store"
)

var forkSchema = admin.Closed(map[string]admin.Schema{
	"id": {"type": "string"}, "slug": {"type": "string"}, "version_id": {"type": "string"}, "object": {"type": "string", "const": "prompt"},
})

// forkTries is how often a made slug that is taken is replaced by another.
const forkTries = 4

// fork copies the published version of a prompt into the workspace of the call.
func (f *family) fork(c *admin.Call) (any, error) {
	it, err := f.prompts.Find(c)
	if err != nil {
		return nil, err
	}
	if from, moved := c.Value(keptFrom).(store.Scope); moved {
		c.Scope = from
	}
	form := *it.Form
	if c.Body.Given("virtual_key") {
		form.VirtualKey = c.Body.Text("virtual_key")
	}
	if form.CollectionID = c.Body.Text("collection_id"); form.CollectionID == "" {
		if form.CollectionID, err = prompt.DefaultCollection(c.Context, c.Resources, c.Scope); err != nil {
			return nil, err
		}
	}
	name := it.Name
	if c.Body.Given("name") {
		name = c.Body.Text("name")
	}
	var rec *resource.Record
	for range forkTries {
		if rec, err = f.copy(c, name, form); !fault.Is(err, fault.Conflict) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return admin.Members{"id": rec.ID, "slug": rec.Slug, "version_id": rec.VersionID, "object": "prompt"}, nil
}

// copy makes a prompt of a form.
func (f *family) copy(c *admin.Call, name string, form prompt.Prompt) (*resource.Record, error) {
	rec := &resource.Record{}
	err := c.Change(func(tx *resource.Tx) error {
		*rec = resource.Record{
			Scope: c.Scope, Kind: prompt.KindPrompt, ID: resource.NewID(), Slug: slugs.Make(name), Name: name, Status: "active",
			CreatedBy: c.Actor(), UpdatedBy: c.Actor(),
		}
		c.About(rec.ID)
		own := form
		ch := change{Was: new(prompt.Prompt), Rec: rec, Form: &own}
		if err := f.before(c, tx, &ch); err != nil {
			return err
		}
		var err error
		if rec.Body, err = json.Marshal(ch.Form); err != nil {
			return fmt.Errorf("prompts: encode: %w", err)
		}
		if err := tx.Create(rec); err != nil {
			return err
		}
		tx.FirstVersion(rec)
		return nil
	})
	return rec, err
}
