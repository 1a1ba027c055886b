package provider

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/seal/hostpin"
	"gateway/shared/seal/reference"
	"gateway/shared/store"
)

// Secrets returns the values that secret mappings name, whichever fields they fill.
type Secrets struct {
	resolver *reference.Resolver
	sealer   seal.Sealer
}

// NewSecrets returns Secrets that use transport for calls.
func NewSecrets(sealer seal.Sealer, tokens *Tokens, transport http.RoundTripper) *Secrets {
	return &Secrets{reference.New(transport, Proofs{tokens}, tokens.Now), sealer}
}

// Values returns the value of each mapping by its target field, and until when the values
// may be used without asking again. sc is the workspace in which they are used. The error
// is a fault that names the reference and reveals nothing of a secret.
func (s *Secrets) Values(ctx context.Context, v *resource.View, sc store.Scope, mappings []SecretMapping) (map[string]string, time.Time, error) {
	out := make(map[string]string, len(mappings))
	var until time.Time
	for i := range mappings {
		m := &mappings[i]
		source, err := s.source(ctx, v, sc, m.SecretReferenceID)
		if err != nil {
			return nil, until, err
		}
		if m.Restricted && hostpin.Chooses(m.SecretKey, source.SecretKey) {
			return nil, until, fault.Newf(fault.NotAllowed, "secret_mappings", "The secret reference %s and the mapping of %s name different fields of the secret; save the mapping again", fault.Clip(m.SecretReferenceID, 300), fault.Clip(m.TargetField, 300))
		}
		value, good, err := s.resolver.Value(ctx, source)
		if err != nil {
			return nil, until, err
		}
		key := m.SecretKey
		if key == "" {
			key = source.SecretKey
		}
		text, err := value.Read(key, m.ValueFormat)
		if err != nil {
			return nil, until, source.Named(err)
		}
		if out[m.TargetField] = text; until.IsZero() || good.Before(until) {
			until = good
		}
	}
	return out, until, nil
}

// MarkRejected makes the next read query the managers again, because the receiver of the values
// rejected them.
func (s *Secrets) MarkRejected(ctx context.Context, v *resource.View, sc store.Scope, mappings []SecretMapping) {
	for i := range mappings {
		if source, err := s.source(ctx, v, sc, mappings[i].SecretReferenceID); err == nil {
			s.resolver.MarkRejected(source)
		}
	}
}

// Loaded is Secrets for callers without a view of their own: what they read is as fresh as
// in a request.
type Loaded struct {
	Secrets *Secrets
	Loader  *resource.Loader
}

// Values is Secrets.Values.
func (l *Loaded) Values(ctx context.Context, sc store.Scope, mappings []SecretMapping) (map[string]string, error) {
	v, err := l.Loader.Fresh(ctx, sc.Org)
	if err != nil {
		return nil, err
	}
	values, _, err := l.Secrets.Values(ctx, v, sc, mappings)
	return values, err
}

// MarkRejected is Secrets.MarkRejected.
func (l *Loaded) MarkRejected(ctx context.Context, sc store.Scope, mappings []SecretMapping) {
	if v, err := l.Loader.Fresh(ctx, sc.Org); err == nil {
		l.Secrets.MarkRejected(ctx, v, sc, mappings)
	}
}

// source finds a reference that the workspace may use.
func (s *Secrets) source(ctx context.Context, v *resource.View, sc store.Scope, name string) (*reference.Source, error) {
	source, ok, err := resource.Load(ctx, v, sc.Organisation(), reference.Kind, name, func(rec resource.Record) (*reference.Source, error) {
		if rec.Archived() {
			return nil, nil
		}
		return SourceOf(rec, s.sealer)
	})
	switch {
	case err != nil:
		return nil, err
	case !ok || source == nil:
		return nil, fault.Newf(fault.ProviderError, "secret_mappings", "The secret reference %s does not exist", fault.Clip(name, 300))
	case !source.OpenTo(sc.Workspace):
		return nil, fault.Newf(fault.NotAllowed, "secret_mappings", "The secret reference %s is not available in this workspace", fault.Clip(name, 300))
	}
	return source, nil
}

// SourceOf makes the record of a secret reference ready to be resolved.
func SourceOf(rec resource.Record, sealer seal.Sealer) (*reference.Source, error) {
	name := rec.Slug
	if name == "" {
		name = rec.ID
	}
	return reference.NewSource(rec.Scope.Org, rec.ID, name, rec.Body, rec.Sealed, func(ctx context.Context) (map[string][]byte, error) {
		return rec.OpenSecrets(ctx, sealer)
	})
}

// Links is a change of the secret mappings of a resource, or of the addresses to which
// mapped secrets are sent.
type Links struct {
	Was, Now  []SecretMapping
	Addresses []hostpin.Address
	By        hostpin.Caller
}

// LinkSecrets stages that the resource by uses the secret references of its new mappings,
// and no longer those of its old ones: a reference cannot be deleted while it is used. It
// marks the mappings of callers without permission to read references as Restricted. The
// error is a 400 or 403 that names the mappings with a missing or inaccessible reference,
// and those that the caller may not create or combine with the addresses.
func LinkSecrets(tx *resource.Tx, by resource.Ref, l Links) error {
	org := by.Scope.Organisation()
	before, after := map[string]resource.Ref{}, map[string]resource.Ref{}
	for _, m := range l.Was {
		rec, ok, err := tx.Get(org, reference.Kind, m.SecretReferenceID)
		if err != nil {
			return err
		}
		if ok {
			before[rec.ID] = rec.Ref()
		}
	}
	pinned := hostpin.Change{Addresses: l.Addresses, By: l.By}
	var bad []fault.Detail
	for n := range l.Now {
		m := &l.Now[n]
		at := fmt.Sprintf("secret_mappings[%d]", n)
		ref, form, err := openReference(tx, by, m.SecretReferenceID)
		if err != nil {
			return err
		}
		if form == nil {
			bad = append(bad, fault.Detail{Field: at + ".secret_reference_id", Message: "must name a secret reference of the organization"})
			form = &reference.Reference{}
		} else {
			after[ref.ID] = ref
		}
		changed := m.restrict(l.Was, l.By.Reads)
		pinned.Mappings = append(pinned.Mappings, hostpin.Mapping{Field: at, Target: m.TargetField, Changed: changed, Key: m.SecretKey, ReferenceKey: form.SecretKey})
	}
	if err := pinned.Check(); err != nil {
		return err
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return stageUses(tx, by, before, after)
}

// openReference returns a secret reference that is open to the workspace of a resource; nil
// if there is none.
func openReference(tx *resource.Tx, by resource.Ref, name string) (resource.Ref, *reference.Reference, error) {
	rec, ok, err := tx.Get(by.Scope.Organisation(), reference.Kind, name)
	if err != nil || !ok || rec.Archived() {
		return resource.Ref{}, nil, err
	}
	form, err := reference.Decode(rec.Body)
	if err != nil || by.Scope.Workspace != "" && !form.OpenTo(by.Scope.Workspace) {
		return resource.Ref{}, nil, err
	}
	return rec.Ref(), form, nil
}

// restrict sets Restricted and reports whether the mapping differs from the stored ones.
// Callers who may read references decide about it themselves.
func (m *SecretMapping) restrict(was []SecretMapping, reads bool) (changed bool) {
	plain := *m
	plain.Restricted = false
	for _, old := range was {
		mark := old.Restricted
		old.Restricted = false
		if old == plain {
			if !reads {
				m.Restricted = mark
			}
			return false
		}
	}
	m.Restricted = m.Restricted || !reads
	return true
}

func stageUses(tx *resource.Tx, by resource.Ref, before, after map[string]resource.Ref) error {
	for id, of := range before {
		if _, stays := after[id]; !stays {
			if err := tx.RemoveUse(of, by); err != nil {
				return err
			}
		}
	}
	for id, of := range after {
		if _, existed := before[id]; existed {
			continue
		}
		if err := tx.Use(of, by); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceMapped replaces a key and configurations by the values of mappings.
func ReplaceMapped(values map[string]string, key *string, fields map[string]any) {
	for target, v := range values {
		if target == SecretKey {
			*key = v
		} else if name, ok := strings.CutPrefix(target, configPrefix); ok {
			fields[name] = v
		}
	}
}

// MapsAddress reports whether mappings fill a field that changes the host that is called.
func (i *Integration) MapsAddress() bool {
	p, ok := ByID(i.AIProviderID)
	if !ok {
		return true
	}
	for _, m := range i.SecretMappings {
		if name, isField := strings.CutPrefix(m.TargetField, configPrefix); isField {
			if f, known := p.Field(name); !known || f.Part()&HostField != 0 {
				return true
			}
		}
	}
	return false
}
