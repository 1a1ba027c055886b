package collections

import (
	"regexp"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/prompt"
	"gateway/shared/resource"
	"gateway/shared/store"
)

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
		Shown: []admin.Shown[prompt.Label]{{
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

// mine refuses to change a label that every organisation has.
func mine(l *prompt.Label) error {
	if l.Universal {
		return fault.New(fault.NotAllowed, "", "The labels "+strings.Join(prompt.UniversalLabels, ", ")+" cannot be changed")
	}
	return nil
}

func checkLabel(c *admin.Call, ch *admin.Change[prompt.Label]) []fault.Detail {
	name := ch.Rec.Name
	if slices.Contains(taken, name) || strings.Trim(name, "0123456789") == "" {
		return []fault.Detail{{Field: "name", Message: "must not be a number, nor " + strings.Join(taken, ", ") + ": these name versions by themselves"}}
	}
	return nil
}

// beforeLabel ensures that a name denotes only one label in a workspace.
func beforeLabel(c *admin.Call, _ *resource.Tx, ch *admin.Change[prompt.Label]) error {
	if err := mine(ch.Was); err != nil {
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
			return fault.Newf(fault.Conflict, "name", "the label %q exists already", ch.Rec.Name)
		}
	}
	ch.Rec.Slug = ch.Rec.Name
	return nil
}
