package provider

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
)

// StoredCredential is one of several keys of an integration. The key itself is sealed under
// the name of Secret.
type StoredCredential struct {
	ID     string `json:"id"` // new with every key, so that what is known of a key ends with it
	Label  string `json:"label"`
	Weight int    `json:"weight"`
	Masked string `json:"masked_key"`
}

// Secret returns the name under which the key is sealed.
func (c *StoredCredential) Secret() string { return sealedCredential + c.ID }

const sealedCredential = "credentials."

// CredentialInput is an entry of the field credentials in a request. Without a key it keeps
// the stored key with its label.
type CredentialInput struct {
	Label     string `json:"label,omitempty" max:"64" doc:"Unique in the list; letters, digits and . _ -. Absent: the position in the list, from 1. Logs, explanations and health name the credential by it."`
	Key       string `json:"key,omitempty" max:"16384" doc:"API key; sealed, never read back. Absent: the stored key with this label."`
	Weight    *int   `json:"weight,omitempty" min:"0" max:"1000" doc:"Share of the requests; absent: 1. 0: only while no other credential can be used."`
	MaskedKey string `json:"masked_key,omitempty" max:"64" doc:"From reads; ignored."`
}

// CredentialShown is a credential as reads show it.
type CredentialShown struct {
	Label     string `json:"label"`
	Weight    int    `json:"weight"`
	MaskedKey string `json:"masked_key"`
}

// CredentialsDoc describes the field credentials in the API document.
const CredentialsDoc = "Several API keys of the same account, in place of key. Each request uses one by weight. A credential rejected with 401 is skipped until a test of the provider succeeds with it or its key is saved again; one rejected with 429 is skipped for a while; the request continues with another one. The list replaces the stored one; null or [] removes it."

// MaxCredentials is the maximum number of credentials of an integration.
const MaxCredentials = 10

// MaskedCredentials returns the credentials as reads show them.
func (i *Integration) MaskedCredentials() []CredentialShown {
	out := make([]CredentialShown, len(i.Credentials))
	for n := range i.Credentials {
		c := &i.Credentials[n]
		out[n] = CredentialShown{Label: c.Label, Weight: c.Weight, MaskedKey: c.Masked}
	}
	return out
}

// setCredentials replaces the list of credentials. The keys that are not sent again stay
// sealed; those of removed entries are deleted.
func (e *edit) setCredentials(stored []StoredCredential, list []CredentialInput) []StoredCredential {
	if len(list) > 0 && e.p.Key == "" {
		e.fail("credentials", "is only allowed for providers with an API key, which %s does not have", e.p.ID)
		return stored
	}
	out := make([]StoredCredential, 0, len(list))
	weight := 0
	for n := range list {
		in, at := &list[n], fmt.Sprintf("credentials[%d]", n)
		c := StoredCredential{Label: cmp.Or(in.Label, fmt.Sprint(n+1)), Weight: 1}
		if in.Weight != nil {
			c.Weight = *in.Weight
		}
		weight += c.Weight
		if strings.Trim(c.Label, labelCharacters) != "" {
			e.fail(at+".label", "must be letters, digits and . _ -")
		}
		if slices.ContainsFunc(out, func(o StoredCredential) bool { return o.Label == c.Label }) {
			e.fail(at+".label", "is already the label of another credential in the list")
		}
		was := slices.IndexFunc(stored, func(o StoredCredential) bool { return o.Label == c.Label })
		switch {
		case in.Key != "":
			e.newKey(&c, in.Key, at+".key", list[:n])
		case was >= 0:
			c.ID, c.Masked = stored[was].ID, stored[was].Masked
		default:
			e.fail(at+".key", "is required: no key is stored with the label %s", c.Label)
		}
		out = append(out, c)
	}
	if len(list) > 0 && weight == 0 {
		e.fail("credentials", "needs an entry with a weight above 0")
	}
	for n := range stored {
		if !slices.ContainsFunc(out, func(o StoredCredential) bool { return o.ID == stored[n].ID }) {
			e.secret[stored[n].Secret()] = nil
		}
	}
	return out
}

const labelCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// newKey gives a credential a key that was sent. earlier are the entries before it.
func (e *edit) newKey(c *StoredCredential, key, field string, earlier []CredentialInput) {
	e.rejectMasked(field, key)
	if !printable(key) {
		e.fail(field, "must not contain spaces or control characters")
	}
	if n := slices.IndexFunc(earlier, func(o CredentialInput) bool { return o.Key == key }); n >= 0 {
		e.fail(field, "is also the key of credentials[%d]", n)
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	c.ID, c.Masked = hex.EncodeToString(id[:]), audit.Mask(key)
	e.secret[c.Secret()] = key
}

// checkCredentials rejects a key beside a list of credentials. A list that is sent replaces
// the stored key.
func (e *edit) checkCredentials(list []StoredCredential, sent bool) {
	if len(list) == 0 {
		return
	}
	key, present := e.secret[SecretKey]
	switch {
	case slices.Contains(e.filled, SecretKey):
		e.fail("credentials", "cannot be combined with a secret mapping of key: send one of them")
	case present && key != nil:
		e.fail(SecretKey, "cannot be combined with credentials: send one of them; [] as credentials removes those")
	case sent && e.rec.HasSecret(SecretKey):
		e.secret[SecretKey] = nil
	}
}

// retainedCredentials names the sealed keys that the change neither replaces nor removes.
func retainedCredentials(rec *resource.Record, list []StoredCredential, changed map[string]any) (names []string) {
	for n := range list {
		name := list[n].Secret()
		if _, present := changed[name]; !present && rec.HasSecret(name) {
			names = append(names, fmt.Sprintf("credentials[%d].key", n))
		}
	}
	return names
}

// sealedModelHeaders begins the names under which the custom headers of single models are
// sealed; the slug of the model follows.
const sealedModelHeaders = "model_headers/"

// SealModels seals the custom headers of models into rec and stores their masked form. It
// also seals headers that an earlier version stored unsealed, and removes headers of
// deleted models and of models without a host. The error is a *fault.Fault.
func (i *Integration) SealModels(ctx context.Context, s seal.Sealer, rec *resource.Record) error {
	masks := make(map[string]map[string]string, len(i.ModelHeaders))
	for n := range i.Models {
		m := &i.Models[n]
		if m.Configurations == nil {
			continue
		}
		if len(m.Configurations.CustomHeaders) == 0 {
			if headers := i.ModelHeaders[m.Slug]; headers != nil {
				masks[m.Slug] = headers
			}
			continue
		}
		plain, err := json.Marshal(m.Configurations.CustomHeaders)
		if err != nil {
			return fault.Internal(err)
		}
		if err := rec.SetSecret(ctx, s, sealedModelHeaders+m.Slug, plain); err != nil {
			return fault.Unavailable(err)
		}
		masks[m.Slug] = i.MaskedHeaders(m)
		host := *m.Configurations // the value may be shared
		host.CustomHeaders = nil
		m.Configurations = &host
	}
	for _, name := range rec.SecretNames() {
		if slug, ok := strings.CutPrefix(name, sealedModelHeaders); ok && masks[slug] == nil {
			if err := rec.SetSecret(ctx, s, name, nil); err != nil {
				return fault.Unavailable(err)
			}
		}
	}
	if i.ModelHeaders = masks; len(masks) == 0 {
		i.ModelHeaders = nil
	}
	return nil
}

// MaskedHeaders returns the custom headers of a model as reads show them.
func (i *Integration) MaskedHeaders(m *IntegrationModel) map[string]string {
	if m.Configurations == nil || len(m.Configurations.CustomHeaders) == 0 {
		return i.ModelHeaders[m.Slug]
	}
	masked := make(map[string]string, len(m.Configurations.CustomHeaders))
	for name, value := range m.Configurations.CustomHeaders {
		masked[name] = audit.Mask(value)
	}
	return masked
}

// OpenModelHeaders moves the custom headers of models out of opened secrets. Those that an
// earlier version stored unsealed are in the model itself.
func (i *Integration) OpenModelHeaders(secrets map[string][]byte) (map[string]map[string]string, error) {
	out := make(map[string]map[string]string)
	for name, plain := range secrets {
		slug, ok := strings.CutPrefix(name, sealedModelHeaders)
		if !ok {
			continue
		}
		delete(secrets, name)
		var headers map[string]string
		if err := json.Unmarshal(plain, &headers); err != nil {
			return nil, fmt.Errorf("provider: custom headers of the model %s: %w", slug, err)
		}
		out[slug] = headers
	}
	for n := range i.Models {
		if host := i.Models[n].Configurations; host != nil && len(host.CustomHeaders) > 0 {
			out[i.Models[n].Slug] = host.CustomHeaders
		}
	}
	return out, nil
}
