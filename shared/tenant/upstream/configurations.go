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

// Prefix begins the names of configurations in errors and in secret mappings.
const Prefix = "configurations."

// Change is a person's change of the configurations: members by name; null removes one.
// Clear removes those that are not named.
type Change struct {
	Members map[string]json.RawMessage
	Clear   bool
}

// Secrets names the secrets of members. A member with nil is secret as a whole. Members
// that are not listed have no secrets.
type Secrets map[string][]string

// Apply returns the members as they will be stored, with secrets masked, and seals those that
// have secrets into rec. check gives further errors in what was sent; after any error nothing
// is sealed.
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

// Kept returns the fields of the secrets that rec had before the change and still has, for
// hostpin.Change.
func (ch *Change) Kept(rec *resource.Record) (fields []string) {
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

// mask returns a member as it is shown, and reports whether it has secrets.
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
		texts.Hide(members, Prefix+name)
	}
	for _, n := range names {
		if v, ok := members[n]; ok {
			members[n] = texts.Hide(v, Prefix+name+"."+n)
		}
	}
	shown, err := json.Marshal(members)
	if err != nil {
		return raw, false, []fault.Detail{{Field: Prefix + name, Message: "cannot be stored"}}
	}
	return shown, texts.Found, texts.Bad
}

// Open returns the members with the sealed values in their places. opened is what
// Record.OpenSecrets gives; without it secrets are masked.
func Open(stored map[string]json.RawMessage, opened map[string][]byte, into any) error {
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
