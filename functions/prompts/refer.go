package prompts

import (
	"strconv"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/prompt"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

// Names of values that a call stores for its hooks.
const (
	keptCollection = "collection of the list"
	keptPartials   = "some version takes in partials"
)

// before puts ids and slugs in place of the names that were sent, and refuses what
// does not exist; all at once. It runs for the new version of an update and for the
// record.
func (f *family) before(c *admin.Call, tx *resource.Tx, ch *change) error {
	var bad []fault.Detail
	if id, ok := c.Value(keptDefault).(string); ok && ch.Creates() && ch.Form.CollectionID == "" {
		ch.Form.CollectionID = id
	}
	if ch.Form.CollectionID != ch.Was.CollectionID {
		rec, ok, err := tx.Get(ch.Rec.Scope, prompt.KindCollection, ch.Form.CollectionID)
		if err != nil {
			return err
		}
		if ok && !rec.Archived() {
			ch.Form.CollectionID = rec.ID
			if err := tx.Hold(rec.Ref()); err != nil {
				return err
			}
		} else {
			bad = append(bad, fault.Detail{Field: "collection_id", Message: "is no collection of this workspace"})
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
	if ch.Form.VirtualKey == ch.Was.VirtualKey {
		return nil, nil
	}
	rec, ok, err := tx.Get(ch.Rec.Scope, provider.KindProvider, strings.TrimPrefix(ch.Form.VirtualKey, "@"))
	if err != nil {
		return nil, err
	}
	if !ok || rec.Archived() {
		return []fault.Detail{{Field: "virtual_key", Message: "names no saved provider of this workspace: " + fault.Clip(ch.Form.VirtualKey, 100)}}, nil
	}
	ch.Form.VirtualKey = rec.Slug
	return nil, tx.Hold(rec.Ref())
}

// partials makes sure that the template takes in what exists.
func partials(c *admin.Call, tx *resource.Tx, ch *change) ([]fault.Detail, error) {
	refs := ch.Form.Partials()
	if len(refs) > 0 {
		c.SetValue(keptPartials, true)
	}
	if c.Value(keptPartials) == true {
		if ch.Rec.Fields == nil {
			ch.Rec.Fields = map[string]string{}
		}
		ch.Rec.Fields[prompt.FieldPartials] = "1"
	}
	if ch.Form.String == ch.Was.String || len(refs) == 0 {
		return nil, nil
	}
	g := prompt.Graph{Resources: c.Resources, Scope: ch.Rec.Scope, Get: tx.Get}
	named, bad, err := g.Check(c.Context, prompt.Node{Partials: refs})
	if err != nil || len(bad) > 0 {
		return bad, err
	}
	for i := range named {
		if err := tx.Hold(named[i].Ref()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// matches selects the prompts of a list.
func matches(c *admin.Call, row *resource.Row) bool {
	if shared, ok := c.Value(keptShared).(map[string]bool); ok && !shared[row.ID] {
		return false
	}
	of, _ := c.Value(keptCollection).(string)
	return !c.Query.Given("collection_id") || row.Fields[prompt.FieldCollection] == of
}
