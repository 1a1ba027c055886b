// Package secretreferences is the family of references to secrets in external
// managers, which integrations and virtual keys are mapped to.
package secretreferences

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal/reference"
	"gateway/shared/tenant"
)

// Deps is what the family works with.
type Deps struct {
	// CheckURL is the egress rule for hosts that people name.
	CheckURL reference.URLCheck
	// Transport is the guarded way to secret managers.
	Transport http.RoundTripper
	Now       func() time.Time
}

const (
	scope        = "secret_references"
	path         = "/secret-references"
	maxAllowed   = 1000
	maxOfMembers = 100 // field names in the response of a check
)

// New makes the family.
func New(d Deps) admin.Family {
	if d.Now == nil {
		d.Now = time.Now
	}
	f := &family{Deps: d}
	f.col = f.describe()
	return admin.Family{Name: "secretreferences", Doc: "Secret references: secrets in an external secret manager.", Routes: append(f.col.Routes(), f.verifyRoute()...)}
}

type family struct {
	Deps
	col *admin.Collection[reference.Reference]
}

// item and change are a reference and what happens to it.
type (
	item   = admin.Item[reference.Reference]
	change = admin.Change[reference.Reference]
)

func (f *family) describe() *admin.Collection[reference.Reference] {
	return &admin.Collection[reference.Reference]{
		Kind: reference.Kind, Object: "secret-reference", Path: path, Param: "secretReferenceId",
		Scope: scope, Level: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin,
		Slugs: &admin.Slugs{},
		List:  admin.List{Paging: admin.Paging{DefaultSize: 100, MaxSize: 100}, Tags: true, Search: true},
		Fields: []admin.Field{
			admin.NameField(255), admin.SlugField(255),
			{Name: "description", Single: true},
			{Name: "manager_type", Required: true, CreateOnly: true, Listed: true, Doc: "Type of the secret manager."},
			{Name: "auth_config", Type: admin.Object, Open: true, Required: true, Trigger: true, Form: authSchema(),
				Doc: "How the manager is called. An update changes the fields that it names; null removes one. Secrets are sealed and never returned."},
			{Name: "secret_path", Required: true, Single: true, Doc: "Location of the secret: a name or an ARN, a name or name/version, or a path."},
			{Name: "secret_key", Single: true, Doc: "Field of a secret with several values; null selects the entire secret."},
			{Name: "allow_all_workspaces", Type: admin.Boolean, Default: true, Trigger: true, Doc: "true opens it to every workspace and clears the list."},
			{Name: "allowed_workspaces", Type: admin.Array, Max: maxAllowed, Of: &admin.Field{Type: admin.String, Min: 1, Max: 255}, Trigger: true, Doc: "The workspaces that may use it, by id or slug; null opens it to all."},
			{Name: "tags", Type: admin.TagsField().Type, Of: admin.TagsField().Of, Max: admin.TagsField().Max, Column: true},
		},
		Computed: []admin.ComputedField[reference.Reference]{
			{Field: admin.Field{Name: "created_by", Type: admin.String, Required: true, Doc: "Id of the user or key that created it."}, Value: func(_ *admin.Call, it item) any { return it.CreatedBy }},
			{Field: admin.Field{Name: "status", Type: admin.String, Enum: []string{"ACTIVE"}, Required: true}, Value: func(*admin.Call, item) any { return "ACTIVE" }},
			{Field: admin.Field{Name: "auth_config", Type: admin.Object, Open: true, Single: true, Required: true, Doc: "Secrets are masked_<field>."}, Value: func(_ *admin.Call, it item) any { return shownAuth(it.Form) }},
			{Field: admin.Field{Name: "allow_all_workspaces", Type: admin.Boolean, Single: true, Required: true}, Value: func(_ *admin.Call, it item) any { return it.Form.AllowAll }},
			{Field: admin.Field{Name: "allowed_workspaces", Type: admin.Array, Of: &admin.Field{Type: admin.String}, Single: true, Required: true, Doc: "Ids of the workspaces that may use it, if not all."}, Value: func(_ *admin.Call, it item) any { return admin.OrEmpty(it.Form.Allowed) }},
		},
		New:    func(*admin.Call) reference.Reference { return reference.Reference{AllowAll: true} },
		Check:  check,
		Before: f.before,
		Adjust: func(action string, r *admin.Route) {
			if action == "delete" {
				r.Doc, r.Do = "Delete a secret reference without mappings.", f.col.WithItem("delete", f.delete)
			}
		},
		Created: &admin.Reply{Members: []string{"id", "slug", "object"}},
	}
}

// authSchema is for the document: one form for each way to ask a manager.
func authSchema() admin.Schema {
	members := map[string]any{}
	for _, name := range reference.FieldNames() {
		members[name] = map[string]any{"type": []string{"string", "null"}, "maxLength": 8192}
	}
	for name, values := range reference.Choices() {
		members[name] = map[string]any{"type": "string", "enum": values}
	}
	return admin.Schema{"type": "object", "properties": members, "additionalProperties": true, "example": map[string]any{
		"aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::123456789012:role/reader", "aws_region": "eu-west-1",
	}}
}

// shownAuth is the auth_config as reads show it.
func shownAuth(r *reference.Reference) map[string]string {
	out := maps.Clone(r.Auth)
	if out == nil {
		out = map[string]string{}
	}
	for name, mask := range r.Masked {
		out["masked_"+name] = mask
	}
	return out
}

func check(c *admin.Call, ch *change) (bad []fault.Detail) {
	if why := ch.Form.CheckPath(); why != "" && ch.Form.SecretPath != "" {
		bad = append(bad, fault.Detail{Field: "secret_path", Message: why})
	}
	none := c.Body.HasValue("allowed_workspaces") && len(c.Body.Texts("allowed_workspaces")) == 0
	if none && !c.Body.Bool("allow_all_workspaces") {
		bad = append(bad, fault.Detail{Field: "allowed_workspaces", Message: fmt.Sprintf("must have 1 to %d entries, has 0, or be sent with allow_all_workspaces true", maxAllowed)})
	}
	if c.Body.Bool("allow_all_workspaces") && c.Body.HasValue("allowed_workspaces") && !none {
		bad = append(bad, fault.Detail{Field: "allowed_workspaces", Message: "cannot be given together with allow_all_workspaces true"})
	}
	if c.Body.HasValue("allow_all_workspaces") && !c.Body.Bool("allow_all_workspaces") && !c.Body.HasValue("allowed_workspaces") && (len(ch.Form.Allowed) == 0 || c.Body.Null("allowed_workspaces")) {
		bad = append(bad, fault.Detail{Field: "allowed_workspaces", Message: "is required when allow_all_workspaces is false"})
	}
	return bad
}

// before puts the credential and the workspaces of the body into place.
func (f *family) before(c *admin.Call, tx *resource.Tx, ch *change) error {
	var bad []fault.Detail
	if c.Body.Has("auth_config") {
		var err error
		if bad, err = f.setAuth(c, ch); err != nil {
			return err
		}
	}
	more, err := setAllowed(c, tx, ch.Form)
	if err != nil {
		return err
	}
	if refused := fault.Invalids(append(bad, more...)); refused != nil {
		return refused
	}
	return nil
}

func (f *family) setAuth(c *admin.Call, ch *change) ([]fault.Detail, error) {
	values := map[string]any{}
	if err := c.Body.Decode("auth_config", &values); err != nil {
		return nil, err
	}
	secrets, bad := ch.Form.SetAuth(values, ch.Rec.HasSecret, f.CheckURL)
	masked := maps.Clone(ch.Form.Masked)
	if masked == nil {
		masked = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		v := secrets[name]
		delete(masked, name)
		var plain []byte
		if v != nil {
			if provider.Masked(*v) {
				bad = append(bad, fault.Detail{Field: "auth_config." + name, Message: "is a masked value, as returned by reads; send the complete value or omit the field"})
				continue
			}
			plain, masked[name] = []byte(*v), audit.Mask(*v)
		}
		if len(bad) > 0 {
			continue
		}
		if err := ch.Rec.SetSecret(c.Context, c.Sealer, name, plain); err != nil {
			return nil, fault.Unavailable(err)
		}
	}
	ch.Form.Masked = masked
	return bad, nil
}

// setAllowed settles which workspaces may use the reference.
func setAllowed(c *admin.Call, tx *resource.Tx, form *reference.Reference) (bad []fault.Detail, err error) {
	switch {
	case c.Body.Bool("allow_all_workspaces"), c.Body.Null("allowed_workspaces"):
		form.AllowAll, form.Allowed = true, nil
	case c.Body.HasValue("allowed_workspaces"):
		form.AllowAll, form.Allowed = false, nil
		for n, name := range c.Body.Texts("allowed_workspaces") {
			at := fmt.Sprintf("allowed_workspaces[%d]", n)
			ws, ok, err := tx.Get(c.Organisation(), tenant.KindWorkspace, name)
			switch {
			case err != nil:
				return nil, err
			case !ok || ws.Archived():
				bad = append(bad, fault.Detail{Field: at, Message: "must name a workspace of the organization"})
			case slices.Contains(form.Allowed, ws.ID):
				bad = append(bad, fault.Detail{Field: at, Message: "must not be listed twice"})
			default:
				form.Allowed = append(form.Allowed, ws.ID)
			}
		}
	}
	return bad, nil
}

// delete rejects while an active resource is mapped to the reference. Archived ones do not
// count.
func (f *family) delete(c *admin.Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		it, err := f.col.FindIn(c, tx)
		if err != nil {
			return err
		}
		users, err := c.Resources.Users(c.Context, it.Ref())
		if err != nil {
			return err
		}
		var live []resource.Ref
		for _, by := range users {
			rec, ok, err := tx.Get(by.Scope, by.Kind, by.ID)
			if err != nil {
				return err
			}
			if ok && !rec.Archived() {
				by.Name = rec.Name
				live = append(live, by)
			}
		}
		if err := resource.InUse(it.Ref(), live); err != nil {
			return err
		}
		for _, by := range users[:min(len(users), mostGone)] {
			if err := tx.RemoveUse(it.Ref(), by); err != nil {
				return err
			}
		}
		return tx.Delete(it.Record)
	})
}

// mostGone is how many rows of archived users one change removes. Rows that are left name a
// reference that no longer exists; nothing reads them.
const mostGone = 80

// verifyRoute requests the secret from the manager once, so that a mistake is found before a
// request depends on it.
func (f *family) verifyRoute() []admin.Route {
	return f.col.ItemRoutes(admin.Route{
		Method: "POST", Path: path + "/{secretReferenceId}/verify", Name: "verifySecretReference", Action: audit.Manage,
		Doc: "Check that the secret manager returns the secret. The secret is not returned.", Scopes: []string{scope + ".read"},
		Body:     []admin.Field{{Name: "secret_key", Type: admin.String, Max: 255, Doc: "Overrides the reference's."}},
		BodyMode: admin.OptionalBody, Response: verifySchema, Do: f.col.WithItem("read", f.verify),
	})
}

var verifySchema = admin.Closed(map[string]admin.Schema{
	"success": {"type": "boolean"}, "message": {"type": "string"}, "latency_ms": {"type": "integer"}, "object": {"type": "string", "const": "secret-reference-verification"},
})

func (f *family) verify(c *admin.Call) (any, error) {
	it, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	source, err := provider.SourceOf(*it.Record, c.Sealer)
	if err != nil {
		return nil, err
	}
	began := f.Now()
	message, err := f.fetch(c.Context, source, c.Body.Text("secret_key"))
	out := admin.Members{"object": "secret-reference-verification", "success": err == nil, "message": message, "latency_ms": f.Now().Sub(began).Milliseconds()}
	if err != nil {
		out["message"] = fault.From(err).Message
	}
	return out, nil
}

func (f *family) fetch(ctx context.Context, source *reference.Source, key string) (string, error) {
	value, _, err := reference.New(f.Transport, provider.Proofs{Tokens: provider.NewTokens(f.Transport, f.Now)}, f.Now).Value(ctx, source)
	if err != nil {
		return "", err
	}
	if key == "" {
		key = source.SecretKey
	}
	if _, err := value.Read(key, reference.FormatJSON); err == nil || key == "" {
		return describeValue(value), nil
	}
	if _, err := value.Read(key, reference.FormatString); err != nil {
		return "", source.Named(err)
	}
	return describeValue(value), nil
}

// describeValue describes the value of a secret, by its field names alone.
func describeValue(v *reference.Value) string {
	names := v.Members()
	if len(names) == 0 {
		return "The secret was read; it is a string"
	}
	more := ""
	if len(names) > maxOfMembers {
		names, more = names[:maxOfMembers], " and more"
	}
	return "The secret was read; its fields are " + strings.Join(names, ", ") + more
}
