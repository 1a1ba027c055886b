package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gateway/shared/seal"
)

// sealedSecret is one secret of a record. Each is sealed separately, so that writing one
// does not require opening the others: a process that only writes needs no permission to
// decrypt.
type sealedSecret struct {
	Version int64  `json:"v"`
	Data    []byte `json:"d"`
}

// secretBinding ties a secret to its record and to its name.
func (r *Record) secretBinding(name string, version int64) seal.Binding {
	b := r.Binding(version)
	b.SK += "#secret#" + name
	return b
}

func (r *Record) secrets() (map[string]sealedSecret, error) {
	m := make(map[string]sealedSecret)
	if len(r.Sealed) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(r.Sealed, &m); err != nil {
		return nil, fmt.Errorf("resource: secrets of %s %s: %w", r.Kind, r.ID, err)
	}
	return m, nil
}

func (r *Record) setSecrets(m map[string]sealedSecret) error {
	if len(m) == 0 {
		r.Sealed = nil
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("resource: encode secrets: %w", err)
	}
	r.Sealed = b
	return nil
}

// SetSecret seals plain under name into the record, and replaces an earlier value. The
// record must have its ID. A nil plain removes the secret.
func (r *Record) SetSecret(ctx context.Context, s seal.Sealer, name string, plain []byte) error {
	m, err := r.secrets()
	if err != nil {
		return err
	}
	if plain == nil {
		delete(m, name)
		return r.setSecrets(m)
	}
	if r.ID == "" {
		return fmt.Errorf("resource: a secret needs the record's id first")
	}
	version := r.Rev + 1
	data, err := s.Seal(ctx, r.secretBinding(name, version), plain)
	if err != nil {
		return fmt.Errorf("resource: seal %s of %s %s: %w", name, r.Kind, r.ID, err)
	}
	m[name] = sealedSecret{Version: version, Data: data}
	return r.setSecrets(m)
}

// HasSecret reports whether a secret of that name is sealed in the record.
func (r *Record) HasSecret(name string) bool {
	m, err := r.secrets()
	_, ok := m[name]
	return err == nil && ok
}

// SecretNames returns the names of the secrets that are sealed in the record, sorted.
func (r *Record) SecretNames() []string {
	m, err := r.secrets()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// OpenSecrets opens all secrets of the record, by name. For the data plane only.
func (r *Record) OpenSecrets(ctx context.Context, s seal.Sealer) (map[string][]byte, error) {
	m, err := r.secrets()
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(m))
	for name, v := range m {
		plain, err := s.Open(ctx, r.secretBinding(name, v.Version), v.Data)
		if err != nil {
			return nil, fmt.Errorf("resource: open %s of %s %s: %w", name, r.Kind, r.ID, err)
		}
		out[name] = plain
	}
	return out, nil
}
