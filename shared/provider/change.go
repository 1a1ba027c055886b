package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/seal/hostpin"
)

// Change is a person's change of an integration's credentials.
type Change struct {
	Key *string // nil leaves it unchanged; "" removes it
	// Configurations has the fields to change, by name or alias; nil removes one. Members
	// that start with masked_ come from reads, and are ignored.
	Configurations map[string]any
	ClearAll       bool // remove the configurations that are not named
	// Credentials replaces the list of keys; nil leaves it unchanged, an empty list removes it.
	Credentials *[]CredentialInput
	Mappings    *[]SecretMapping // nil leaves them unchanged
	// Hosts are further addresses that the credential is sent to after the change, such as
	// those of single models.
	Hosts []hostpin.Address
}

// Empty reports whether nothing is changed.
func (ch *Change) Empty() bool {
	return ch.Key == nil && len(ch.Configurations) == 0 && !ch.ClearAll && ch.Credentials == nil && ch.Mappings == nil && len(ch.Hosts) == 0
}

// ChangeStore has the dependencies for storing a change.
type ChangeStore struct {
	Sealer seal.Sealer
	// CheckURL is the egress rule for hosts that people name.
	CheckURL URLCheck
}

// URLCheck rejects addresses that must not be reached, such as egress.Policy.CheckURL,
// and gives the others in their one spelling.
type URLCheck func(raw, field string) (*url.URL, error)

// Names of fields that every provider has besides its own.
const (
	customHost    = "custom_host"
	customHeaders = "custom_headers"
	configPrefix  = "configurations."
	maskedPrefix  = "masked_"
)

// Bounds of integrations and providers, in characters.
const (
	MaxName = 255
	MaxSlug = 255
)

// alreadySealed represents a secret that is stored and cannot be read back.
const alreadySealed = "sealed"

// Apply validates the changed integration, seals the secrets into rec and stores the rest
// in i. The error is a 400 with all wrong fields (key, configurations.<field>,
// secret_mappings[n]...), or 503 if nothing can be sealed. A change of an address without
// the secrets that are sent there is a 400 too. After an error i and rec must not be
// stored. The caller must pass the mappings to LinkSecrets.
func (ch *Change) Apply(ctx context.Context, k ChangeStore, rec *resource.Record, i *Integration) error {
	p, ok := ByID(i.AIProviderID)
	if !ok {
		return fault.Invalid("ai_provider_id", "%s", UnknownProviderMessage(i.AIProviderID))
	}
	e := edit{p: p, rec: rec, plain: maps.Clone(i.Configurations), secret: make(map[string]any)}
	if e.plain == nil {
		e.plain = make(map[string]any)
	}
	if ch.ClearAll {
		e.clear(i)
	}
	e.sort(ch.Configurations)
	if ch.Key != nil {
		e.secret[SecretKey] = nil
		if *ch.Key != "" {
			e.secret[SecretKey] = *ch.Key
		}
	}
	mappings := i.SecretMappings
	if ch.Mappings != nil {
		mappings = e.mappings(*ch.Mappings)
	}
	e.mapped(mappings)
	credentials := i.Credentials
	if ch.Credentials != nil {
		credentials = e.setCredentials(i.Credentials, *ch.Credentials)
	}
	e.checkCredentials(credentials, ch.Credentials != nil)
	e.validate(k, len(credentials) > 0)
	if bad := fault.Invalids(e.bad); bad != nil {
		return bad
	}
	pinned := hostpin.Change{Addresses: append(addresses(p, i, &Integration{Configurations: e.plain, SecretMappings: mappings}), ch.Hosts...), Retained: append(e.retained(), retainedCredentials(rec, credentials, e.secret)...)}
	if err := pinned.Check(); err != nil {
		return err
	}
	i.Configurations, i.SecretMappings, i.Credentials = e.plain, mappings, credentials
	return e.seal(ctx, k.Sealer, i)
}

// edit is a change in progress.
type edit struct {
	p      *Provider
	rec    *resource.Record
	plain  map[string]any // configurations as they will be, without secrets
	secret map[string]any // secrets to set, or nil to remove
	filled []string       // fields that secret mappings fill
	bad    []fault.Detail
}

func (e *edit) fail(field, format string, args ...any) {
	e.bad = append(e.bad, fault.Detail{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (e *edit) clear(i *Integration) {
	clear(e.plain)
	for name := range i.Masked {
		if name, _, _ = strings.Cut(name, "."); name != SecretKey {
			e.secret[name] = nil
		}
	}
}

// sort separates secrets from the rest.
func (e *edit) sort(fields map[string]any) {
	seen := make(map[string]string, len(fields))
	for _, sent := range slices.Sorted(maps.Keys(fields)) {
		if strings.HasPrefix(sent, maskedPrefix) {
			continue
		}
		name, value := sent, fields[sent]
		f, known := e.p.Field(sent)
		if known {
			name = f.Name
		}
		if other, twice := seen[name]; twice {
			e.fail(configPrefix+sent, "is also sent as %s: send one of them", other)
			continue
		}
		seen[name] = sent
		if value == "" {
			value = nil
		}
		switch {
		case name == customHeaders || known && f.Secret:
			e.secret[name] = value
		case value == nil:
			delete(e.plain, name)
		default:
			e.plain[name] = value
		}
	}
}

// mappings checks the targets and gives the mappings with the catalog's names of the
// fields.
func (e *edit) mappings(list []SecretMapping) []SecretMapping {
	out := make([]SecretMapping, 0, len(list))
	for n, m := range list {
		at := fmt.Sprintf("secret_mappings[%d].target_field", n)
		name, ok := strings.CutPrefix(m.TargetField, configPrefix)
		f, known := e.p.Field(name)
		switch {
		case m.TargetField == SecretKey:
		case ok && known:
			m.TargetField = configPrefix + f.Name
		default:
			e.fail(at, "must be key or configurations.<field> with a field of %s", e.p.ID)
		}
		if slices.ContainsFunc(out, func(o SecretMapping) bool { return o.TargetField == m.TargetField }) {
			e.fail(at, "is mapped twice")
		}
		out = append(out, m)
	}
	return out
}

// mapped notes which fields the mappings fill. A stored value of such a field is removed. A
// value that comes with the change is an error, because it would be unclear which of the
// two counts.
func (e *edit) mapped(list []SecretMapping) {
	for _, m := range list {
		e.filled = append(e.filled, m.TargetField)
		name, _ := strings.CutPrefix(m.TargetField, configPrefix)
		if v, present := e.secret[name]; present && v != nil {
			e.fail(m.TargetField, "is set by secret_mappings: send one of them")
			continue
		}
		delete(e.plain, name)
		e.secret[name] = nil
	}
}

// validate checks the integration as it will be. listed reports that it has a list of
// credentials, which hold its keys.
func (e *edit) validate(k ChangeStore, listed bool) {
	whole := maps.Clone(e.plain)
	for _, name := range append(e.p.SecretFields(), customHeaders) {
		switch v, present := e.secret[name]; {
		case present && v != nil:
			whole[name] = v
			e.rejectMasked(configPrefix+name, v)
		case !present && e.rec.HasSecret(name):
			whole[name] = e.placeholder(name)
		}
	}
	key := ""
	switch v, present := e.secret[SecretKey]; {
	case present:
		key, _ = v.(string)
		e.rejectMasked(SecretKey, key)
	case e.rec.HasSecret(SecretKey):
		key = alreadySealed
	}
	if listed && key == "" {
		key = alreadySealed
	}
	e.bad = append(e.bad, e.p.ValidateConfigurations(key, whole, e.filled...)...)
	for name, value := range e.plain {
		f, known := e.p.Field(name)
		host, isText := value.(string)
		at := configPrefix + name
		if !isText || name != customHost && !(known && f.Form == BaseURL) || e.failed(at) {
			continue
		}
		e.plain[name] = e.host(k, host, at)
	}
}

func (e *edit) failed(field string) bool {
	return slices.ContainsFunc(e.bad, func(d fault.Detail) bool { return d.Field == field })
}

func (e *edit) host(k ChangeStore, raw, field string) string {
	u, err := k.CheckURL(raw, field)
	if err != nil {
		e.fail(field, "%s", fault.From(err).Message)
		return raw
	}
	return u.String()
}

// placeholder represents a stored secret in a validation.
func (e *edit) placeholder(name string) any {
	if f, ok := e.p.Field(name); name == customHeaders || ok && f.Form == JSONObject {
		return map[string]any{}
	}
	return alreadySealed
}

// rejectMasked rejects a value that a read has shown: it would be stored as the secret.
func (e *edit) rejectMasked(field string, v any) {
	switch v := v.(type) {
	case string:
		if Masked(v) {
			e.fail(field, "is a masked value, as returned by reads; send the complete value or omit the field")
		}
	case map[string]any:
		for name, inner := range v {
			e.rejectMasked(field+"."+name, inner)
		}
	}
}

// Masked reports whether a text is what reads show in place of a secret: stars, alone or
// with two characters on each side.
func Masked(s string) bool {
	r := []rune(s)
	if len(r) >= 8 {
		r = r[2 : len(r)-2]
	}
	return len(r) >= 4 && strings.Trim(string(r), "*") == ""
}

// seal puts the secrets into the record and what reads show of them into i.
func (e *edit) seal(ctx context.Context, s seal.Sealer, i *Integration) error {
	masked := maps.Clone(i.Masked)
	if masked == nil {
		masked = make(map[string]string)
	}
	for name, v := range e.secret {
		if v == nil && !e.rec.HasSecret(name) {
			continue
		}
		maps.DeleteFunc(masked, func(have, _ string) bool { return have == name || strings.HasPrefix(have, name+".") })
		var plain []byte
		switch v := v.(type) {
		case nil:
		case string:
			if plain = []byte(v); !strings.HasPrefix(name, sealedCredential) { // those have their masked form in the list
				masked[name] = audit.Mask(v)
			}
		default:
			var err error
			if plain, err = json.Marshal(v); err != nil {
				return fault.Invalid(configPrefix+name, "cannot be stored")
			}
			maskMembers(masked, name, v)
		}
		if err := e.rec.SetSecret(ctx, s, name, plain); err != nil {
			return fault.Unavailable(err)
		}
	}
	i.Masked = masked
	return nil
}

// maskMembers notes the masked form of each custom header; of other objects nothing is
// shown.
func maskMembers(masked map[string]string, name string, v any) {
	headers, _ := v.(map[string]any)
	if name != customHeaders || len(headers) == 0 {
		masked[name] = audit.Mask("")
		return
	}
	for header, value := range headers {
		text, _ := value.(string)
		masked[name+"."+header] = audit.Mask(text)
	}
}

// MaskedConfigurations is the configurations as reads show them, with secrets as masked_<field>.
func (i *Integration) MaskedConfigurations() map[string]any {
	out := make(map[string]any, len(i.Configurations)+len(i.Masked))
	maps.Copy(out, i.Configurations)
	headers := make(map[string]string)
	for name, mask := range i.Masked {
		if header, ok := strings.CutPrefix(name, customHeaders+"."); ok {
			headers[header] = mask
		} else if name != SecretKey {
			out[maskedPrefix+name] = mask
		}
	}
	if len(headers) > 0 {
		out[maskedPrefix+customHeaders] = headers
	}
	return out
}

// Check returns the errors of a model's own host, below path, and puts the host into its
// one spelling.
func (h *ModelHost) Check(k ChangeStore, path string) []fault.Detail {
	v := validation{}
	if !baseURL(h.CustomHost) {
		v.add(path+"."+customHost, BaseURL.rule())
	} else if u, err := k.CheckURL(h.CustomHost, path+"."+customHost); err != nil {
		v.add(path+"."+customHost, fault.From(err).Message)
	} else {
		h.CustomHost = u.String()
	}
	v.headers(path+"."+customHeaders, h.CustomHeaders)
	for name, value := range h.CustomHeaders {
		if Masked(value) {
			v.add(path+"."+customHeaders+"."+name, "is a masked value, as returned by reads; send the complete value")
		}
	}
	return v.details
}
