package providers

import (
	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
)

const objectKey = "virtual-key"

func (f *family) keys() *admin.Collection[provider.Instance] {
	mappings := admin.Field{Name: "secret_mappings", Type: admin.Array, Of: &admin.Field{Type: admin.Object, Open: true}, Absent: []any{}}
	credentials := admin.Field{Name: "credentials", Type: admin.Array, Of: &admin.Field{Type: admin.Object, Open: true}, Absent: []any{}, Doc: "label, weight and masked_key of each; empty with one key."}
	return f.complete(&admin.Collection[provider.Instance]{
		Object: objectKey, Path: "/virtual-keys", Scope: scopeVirtualKeys,
		Fields: fields(keyFields()...),
		Computed: shown(admin.ComputedField[provider.Instance]{Field: mappings}, admin.ComputedField[provider.Instance]{Field: credentials},
			admin.ComputedField[provider.Instance]{Field: admin.Field{Name: "masked_key", Type: admin.String, Optional: true}}),
		Before: func(c *admin.Call, tx *resource.Tx, ch *change) error {
			into := f.changeIntegration
			if ch.Creates() {
				into = f.bringIntegration
			}
			if err := into(c, tx, ch.Rec, ch.Form); err != nil {
				return err
			}
			return inFuture(c, ch)
		},
		Adjust: func(action string, r *admin.Route) {
			if action == "create" || action == "update" {
				r.Errors = append(r.Errors, 404) // a secret reference that goes at the same time
			}
		},
		Created: &admin.Reply{Members: []string{"slug"}, Wrapped: true},
	})
}

// bringIntegration creates the integration of a new virtual key.
func (f *family) bringIntegration(c *admin.Call, tx *resource.Tx, rec *resource.Record, in *provider.Instance) error {
	p, ok := provider.ByID(c.Body.Text("provider"))
	if !ok {
		return fault.Invalid("provider", "%s", provider.UnknownProviderMessage(c.Body.Text("provider")))
	}
	ch, err := legacyChange(c.Body, p)
	if err != nil {
		return err
	}
	fillModes(p, ch)
	of := resource.Record{
		Scope: rec.Scope, Kind: provider.KindIntegration, ID: resource.NewID(), Slug: rec.Slug, Name: rec.Name,
		Status: provider.StatusActive, CreatedBy: rec.CreatedBy, UpdatedBy: rec.UpdatedBy,
	}
	_, taken, err := tx.Get(of.Scope, of.Kind, of.Slug)
	if err != nil {
		return err
	}
	if taken {
		of.Slug = provider.FreshSlug(of.Slug)
	}
	i := provider.Integration{AIProviderID: p.ID, AllowAllModels: true}
	if err := ch.Apply(c.Context, f.changeStore(c), &of, &i); err != nil {
		return legacyNames(c.Body, err)
	}
	links := provider.Links{Now: i.SecretMappings, Addresses: i.Addresses(&provider.Integration{}), By: c.SecretReferences()}
	if err := provider.LinkSecrets(tx, of.Ref(), links); err != nil {
		return legacyNames(c.Body, err)
	}
	if of.Body, err = encode(i); err != nil {
		return err
	}
	in.Bind(&of, &i)
	in.VirtualKey = true
	return tx.Create(&of)
}

func (f *family) changeStore(c *admin.Call) provider.ChangeStore {
	return provider.ChangeStore{Sealer: c.Sealer, CheckURL: f.CheckURL}
}

// changeIntegration changes the credentials of a virtual key. Credentials of a shared
// integration are changed there.
func (f *family) changeIntegration(c *admin.Call, tx *resource.Tx, rec *resource.Record, in *provider.Instance) error {
	p, ok := provider.ByID(in.AIProviderID)
	if !ok {
		return fault.Invalid("provider", "%s", provider.UnknownProviderMessage(in.AIProviderID))
	}
	if c.Body.HasValue("provider") {
		if same, ok := provider.ByID(c.Body.Text("provider")); !ok || same != p {
			return fault.Invalid("provider", "cannot be changed")
		}
	}
	ch, err := legacyChange(c.Body, p)
	if err != nil || ch.Empty() {
		return err
	}
	if !in.VirtualKey {
		return fault.Invalid(firstCredential(c.Body), "belongs to the integration %s: change it there", in.IntegrationSlug)
	}
	of, ok, err := tx.Get(in.IntegrationScope(rec.Scope), provider.KindIntegration, in.IntegrationID)
	if err != nil {
		return err
	}
	if !ok || of.Archived() {
		return admin.Denied()
	}
	i, err := provider.DecodeIntegration(of)
	if err != nil {
		return err
	}
	was := *i
	if err := ch.Apply(c.Context, f.changeStore(c), &of, i); err != nil {
		return legacyNames(c.Body, err)
	}
	links := provider.Links{Was: was.SecretMappings, Now: i.SecretMappings, Addresses: i.Addresses(&was), By: c.SecretReferences()}
	if err := provider.LinkSecrets(tx, of.Ref(), links); err != nil {
		return legacyNames(c.Body, err)
	}
	if of.Body, err = encode(i); err != nil {
		return err
	}
	of.UpdatedBy = rec.UpdatedBy
	return tx.Update(&of)
}

// fillModes chooses how to authenticate where an older client does not say: by
// what it sends.
func fillModes(p *provider.Provider, ch *provider.Change) {
	has := func(name string) bool { return ch.Configurations[name] != nil }
	key := ch.Key != nil && *ch.Key != "" || ch.Credentials != nil && len(*ch.Credentials) > 0
	for i := range p.Fields {
		fd := &p.Fields[i]
		if len(fd.Values) == 0 || fd.Need == "" || has(fd.Name) {
			continue
		}
		mode := fd.Values[0]
		switch {
		case fd.Name == "aws_auth_type" && has("aws_role_arn"):
			mode = "assumedRole"
		case fd.Name == "aws_auth_type" && key && !has("aws_access_key_id"):
			mode = "apiKey"
		case fd.Name == "vertex_auth_type" && has("vertex_service_account_json"):
			mode = "serviceAccount"
		}
		ch.Configurations[fd.Name] = mode
	}
}
