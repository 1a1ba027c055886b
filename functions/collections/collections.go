// Package collections is the family of what puts prompts in order: collections,
// which are folders, and labels, which versions carry.
package collections

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/prompt"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// New makes the family.
func New() admin.Family {
	return admin.Family{Name: "collections", Doc: "Collections of prompts, and labels of their versions.", Routes: append(collections().Routes(), labels().Routes()...)}
}

// item and change are a collection and what happens to it.
type (
	item   = admin.Item[prompt.Collection]
	change = admin.Change[prompt.Collection]
)

func collections() *admin.Collection[prompt.Collection] {
	return &admin.Collection[prompt.Collection]{
		Kind: prompt.KindCollection, Object: "collection", Path: "/collections", Param: "collectionId",
		Scope: "prompts", Resource: "collections", Level: admin.InWorkspace, WriteRole: admin.Manager,
		WorkspaceFields: map[string]resource.Kind{"parent_collection_id": prompt.KindCollection},
		Slugs:           &admin.Slugs{Prefix: "col-"},
		List:            admin.List{Envelope: &admin.TotalEnvelope, Search: true},
		Fields: []admin.Field{
			admin.NameField(prompt.MaxName), admin.SlugField(255),
			{Name: "parent_collection_id", In: "parent_collection_id", Reference: "/collections", CreateOnly: true},
		},
		Computed: []admin.ComputedField[prompt.Collection]{
			{Field: admin.Field{Name: "is_default", Type: admin.Integer, Required: true}, Value: func(_ *admin.Call, it item) any { return admin.Flag(it.Form.IsDefault) }},
			{Field: admin.Field{Name: "collection_details", Type: admin.Object, Required: true, Doc: "Number of collections and prompts in it, and their last changes.", Form: detailsSchema}},
			{Field: admin.Field{Name: "child_collections", Type: admin.Array, Required: true, Single: true, Doc: "The collections in it.", Form: childrenSchema}},
		},
		Admit: func(c *admin.Call, _ string) error {
			if c.Scope.Workspace == "" { // a list of all workspaces
				return nil
			}
			_, err := prompt.DefaultCollection(c.Context, c.Resources, c.Scope)
			return err
		},
		Adjust: func(action string, r *admin.Route) {
			if action == "create" {
				r.Errors = append(r.Errors, 404)
			}
		},
		Before: before, Retire: retire, Decorate: decorate,
	}
}

var (
	detailsSchema = admin.Schema(admin.Closed(map[string]admin.Schema{
		"child_collections_count": {"type": "integer"}, "prompts_count": {"type": "integer"},
		"child_collections_last_updated_at": {"type": []string{"string", "null"}, "format": "date-time"},
		"prompts_last_updated_at":           {"type": []string{"string", "null"}, "format": "date-time"},
	}))
	childrenSchema = admin.Schema{"type": "array", "items": admin.Closed(map[string]admin.Schema{
		"id": {"type": "string"}, "name": {"type": "string"}, "last_updated_at": {"type": []string{"string", "null"}, "format": "date-time"}, "collection_details": detailsSchema,
	})}
)

// maxNested is the maximum depth of nested collections.
const maxNested = 10

func before(_ *admin.Call, tx *resource.Tx, ch *change) error {
	if ch.Rec.Fields == nil {
		ch.Rec.Fields = map[string]string{}
	}
	ch.Rec.Fields[prompt.FieldUpdated] = strconv.FormatInt(tx.Now().UnixMilli(), 10)
	if !ch.Creates() || ch.Form.ParentID == "" {
		return nil
	}
	rec, ok, err := tx.Get(ch.Rec.Scope, prompt.KindCollection, ch.Form.ParentID)
	if err != nil {
		return err
	}
	if !ok || rec.Archived() {
		return fault.New(fault.NotFound, "parent_collection_id", "This collection does not exist")
	}
	ch.Form.ParentID, ch.Rec.Fields[prompt.FieldParent] = rec.ID, rec.ID
	hold := rec.Ref()
	for depth := 2; rec.Fields[prompt.FieldParent] != ""; depth++ {
		if depth == maxNested {
			return fault.Invalid("parent_collection_id", "collections may be nested at most %d deep", maxNested)
		}
		if rec, ok, err = tx.Get(ch.Rec.Scope, prompt.KindCollection, rec.Fields[prompt.FieldParent]); err != nil || !ok {
			return err
		}
	}
	return tx.RequireExists(hold)
}

// retire prevents the deletion of the default collection and of collections that are not empty.
func retire(c *admin.Call, tx *resource.Tx, it item) error {
	if it.Form.IsDefault {
		return fault.New(fault.NotFound, "collectionId", "The default collection cannot be deleted")
	}
	var users []resource.Ref
	for _, of := range []struct {
		kind  resource.Kind
		field string
	}{{prompt.KindCollection, prompt.FieldParent}, {prompt.KindPrompt, prompt.FieldCollection}} {
		rows, err := c.Resources.List(c.Context, it.Scope, of.kind)
		if err != nil {
			return err
		}
		for i := range rows {
			if rows[i].Fields[of.field] == it.ID {
				users = append(users, resource.Ref{Scope: it.Scope, Kind: of.kind, ID: rows[i].ID, Name: rows[i].Name})
			}
		}
	}
	return resource.InUse(it.Ref(), users)
}

// inside is what collections hold, counted from the rows of lists.
type inside struct {
	children, prompts         int
	childrenLatest, promptsAt int64
}

func decorate(c *admin.Call, items []item, objects []admin.Members) error {
	return admin.ByScope(items, func(sc store.Scope, positions []int) error {
		children, err := c.Resources.List(c.Context, sc, prompt.KindCollection)
		if err != nil {
			return err
		}
		prompts, err := c.Resources.List(c.Context, sc, prompt.KindPrompt)
		if err != nil {
			return err
		}
		of := count(children, prompts)
		for _, i := range positions {
			objects[i]["collection_details"] = of(items[i].ID).shown()
		}
		if len(items) == 1 { // lists omit it
			objects[0]["child_collections"] = below(items[0].ID, children, of)
		}
		return nil
	})
}

// count returns what each collection of a workspace contains, by id.
func count(collections, prompts []resource.Row) func(id string) *inside {
	held := map[string]*inside{}
	of := func(id string) *inside {
		if held[id] == nil {
			held[id] = new(inside)
		}
		return held[id]
	}
	for i := range collections {
		in := of(collections[i].Fields[prompt.FieldParent])
		in.children, in.childrenLatest = in.children+1, max(in.childrenLatest, updated(&collections[i]))
	}
	for i := range prompts {
		in := of(prompts[i].Fields[prompt.FieldCollection])
		in.prompts, in.promptsAt = in.prompts+1, max(in.promptsAt, updated(&prompts[i]))
	}
	return of
}

// below returns the collections directly below a collection.
func below(id string, collections []resource.Row, of func(id string) *inside) []admin.Members {
	out := []admin.Members{}
	for i := range collections {
		if n := &collections[i]; n.Fields[prompt.FieldParent] == id {
			out = append(out, admin.Members{"id": n.ID, "name": n.Name, "last_updated_at": at(updated(n)), "collection_details": of(n.ID).shown()})
		}
	}
	return out
}

func (in *inside) shown() admin.Members {
	return admin.Members{
		"child_collections_count": in.children, "prompts_count": in.prompts,
		"child_collections_last_updated_at": at(in.childrenLatest), "prompts_last_updated_at": at(in.promptsAt),
	}
}

func updated(row *resource.Row) int64 {
	n, err := strconv.ParseInt(row.Fields[prompt.FieldUpdated], 10, 64)
	if err != nil {
		return row.Created.UnixMilli()
	}
	return n
}

func at(ms int64) any {
	if ms == 0 {
		return nil
	}
	return admin.FormatTime(time.UnixMilli(ms))
}

// labelName matches the label after the @ of a prompt's name.
var labelName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// taken are names that mean a version by themselves.
var taken = []string{prompt.Latest, "default", "published"}

func labels() *admin.Collection[prompt.Label] {
	name := admin.NameField(64)
	name.Pattern = labelName
	name.Form = admin.Schema{"type": "string", "minLength": 1, "maxLength": 64, "pattern": labelName.String(), "example": "canary"}
	return &admin.Collection[prompt.Label]{
		Kind: prompt.KindLabel, Object: "label", Path: "/labels", Param: "labelId",
		Resource: "labels", WriteRole: admin.Manager,
		Levels: &admin.Levels[prompt.Label]{Organisation: "prompts", Workspace: "prompts", Shared: true},
		List:   admin.List{Envelope: &admin.TotalEnvelope, Search: true},
		Fields: []admin.Field{name, {Name: "description"}, {Name: "color_code"}},
		Computed: []admin.ComputedField[prompt.Label]{{
			Field: admin.Field{Name: "is_universal", Type: admin.Boolean, Required: true, Doc: "It belongs to every workspace."},
			Value: func(_ *admin.Call, it admin.Item[prompt.Label]) any { return it.Scope.Workspace == "" },
		}},
		Adjust: func(_ string, r *admin.Route) {
			do := r.Do
			r.Do = func(c *admin.Call) (any, error) {
				if err := prompt.EnsureLabels(c.Context, c.Resources, c.Scope.Org); err != nil {
					return nil, err
				}
				return do(c)
			}
		},
		Check:   checkLabel,
		Before:  beforeLabel,
		Retire:  func(_ *admin.Call, _ *resource.Tx, it admin.Item[prompt.Label]) error { return mine(it.Form) },
		Created: &admin.Reply{Members: []string{"id"}},
	}
}

// mine refuses to change a label that every organization has.
func mine(l *prompt.Label) error {
	if l.Universal {
		return fault.New(fault.NotAllowed, "", "The labels "+strings.Join(prompt.UniversalLabels, ", ")+" cannot be changed")
	}
	return nil
}

func checkLabel(c *admin.Call, ch *admin.Change[prompt.Label]) []fault.Detail {
	name := ch.Rec.Name
	if slices.Contains(taken, name) || strings.Trim(name, "0123456789") == "" {
		return []fault.Detail{{Field: "name", Message: "must not be a number or " + strings.Join(taken, ", ") + ": these are reserved for versions"}}
	}
	return nil
}

// beforeLabel ensures that a name denotes only one label in a workspace.
func beforeLabel(c *admin.Call, _ *resource.Tx, ch *admin.Change[prompt.Label]) error {
	if err := mine(ch.OldForm); err != nil {
		return err
	}
	scopes := []store.Scope{ch.Rec.Scope}
	if ch.Rec.Scope.Workspace != "" {
		scopes = append(scopes, c.Organisation())
	}
	for _, sc := range scopes {
		rows, err := c.Resources.List(c.Context, sc, prompt.KindLabel)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(rows, func(r resource.Row) bool { return r.Name == ch.Rec.Name && r.ID != ch.Rec.ID }) {
			return fault.Newf(fault.Conflict, "name", "the label %q already exists", ch.Rec.Name)
		}
	}
	ch.Rec.Slug = ch.Rec.Name
	return nil
}
