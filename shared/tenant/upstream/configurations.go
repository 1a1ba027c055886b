package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
)

// Prefix is the prefix of configuration names in errors and in secret mappings.
const Prefix = "configurations."

// Change is an update of the configurations: fields by name; null removes one. Clear removes
// the fields that are not named.
type Change struct {
	Members map[string]json.RawMessage
	Clear   bool
}

// Secrets lists the secrets of fields. A field with nil is secret entirely. Fields that are not
// listed have no secrets.
type Secrets map[string][]string

// Apply returns the fields to store, with secrets masked, and seals those with secrets into
// rec. check returns further faults of the update; nothing is sealed if there is any fault.
func (ch *Change) Apply(ctx context.Context, s seal.Sealer, rec *resource.Record, stored map[string]json.RawMessage, secrets Secrets, check func() []fault.Detail) (map[string]json.RawMessage, error) {
	next := maps.Clone(stored)
	if next == nil {
		next = map[string]json.RawMessage{}
	}
	sealed := map[string][]byte{}
	if ch.Clear {
		for name := range next {
			sealed[name] = nil
			delete(next, name)
		}
	}
	var bad []fault.Detail
	for _, name := range slices.Sorted(maps.Keys(ch.Members)) {
		raw := ch.Members[name]
		delete(next, name)
		sealed[name] = nil
		if string(raw) == "null" {
			continue
		}
		shown, secret, wrong := secrets.mask(name, raw)
		bad = append(bad, wrong...)
		next[name] = shown
		if secret {
			sealed[name] = raw
		}
	}
	if refused := fault.Invalids(append(bad, check()...)); refused != nil {
		return nil, refused
	}
	for _, name := range slices.Sorted(maps.Keys(sealed)) {
		if sealed[name] == nil && !rec.HasSecret(name) {
			continue
		}
		if err := rec.SetSecret(ctx, s, name, sealed[name]); err != nil {
			return nil, fault.Unavailable(err)
		}
	}
	return next, nil
}

// Retained returns the secret fields that rec had before the change and still has, for
// hostpin.Change.
func (ch *Change) Retained(rec *resource.Record) (fields []string) {
	if ch.Clear {
		return nil
	}
	for _, name := range rec.SecretNames() {
		if _, sent := ch.Members[name]; !sent {
			fields = append(fields, Prefix+name)
		}
	}
	return fields
}

// mask returns a field with its secrets masked, and reports whether it has any.
func (s Secrets) mask(name string, raw json.RawMessage) (shown json.RawMessage, secret bool, bad []fault.Detail) {
	names, known := s[name]
	if !known {
		return raw, false, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var members map[string]any
	if d.Decode(&members) != nil {
		return raw, false, []fault.Detail{{Field: Prefix + name, Message: "must be an object"}}
	}
	var texts audit.Texts
	if names == nil {
		texts.Mask(members, Prefix+name)
	}
	for _, n := range names {
		if v, ok := members[n]; ok {
			members[n] = texts.Mask(v, Prefix+name+"."+n)
		}
	}
	shown, err := json.Marshal(members)
	if err != nil {
		return raw, false, []fault.Detail{{Field: Prefix + name, Message: "cannot be stored"}}
	}
	return shown, texts.Found, texts.Bad
}

// DecodeFields decodes the fields and restores the sealed values. opened is the result of
// Record.OpenSecrets; without it secrets stay masked.
func DecodeFields(stored map[string]json.RawMessage, opened map[string][]byte, into any) error {
	whole := make(map[string]json.RawMessage, len(stored))
	for name, raw := range stored {
		whole[name] = raw
		if plain, ok := opened[name]; ok {
			whole[name] = plain
		}
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
