package resource

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"gateway/shared/seal"
)

// boxSealer binds a value to its place without hiding it.
type boxSealer struct{ opened int }

func (boxSealer) Seal(_ context.Context, b seal.Binding, plain []byte) ([]byte, error) {
	return fmt.Appendf(nil, "%+v|%s", b, plain), nil
}

func (s *boxSealer) Open(_ context.Context, b seal.Binding, sealed []byte) ([]byte, error) {
	s.opened++
	plain, ok := bytes.CutPrefix(sealed, fmt.Appendf(nil, "%+v|", b))
	if !ok {
		return nil, fmt.Errorf("sealed for another place")
	}
	return plain, nil
}

func TestSecretsSurviveUpdatesAndAreBoundToRecordAndName(t *testing.T) {
	r := New(openStore(t))
	ctx := context.Background()
	s := &boxSealer{}
	rec := Record{Scope: scopeA, Kind: widget, ID: NewID(), Slug: "a", Name: "a"}
	if err := rec.SetSecret(ctx, s, "key", []byte("k1")); err != nil {
		t.Fatal(err)
	}
	rec = create(t, r, rec)
	err := edit(r, scopeA, "a", func(tx *Tx, rec *Record) error { rec.Name = "b"; return tx.Update(rec) })
	if err != nil {
		t.Fatal(err)
	}
	err = edit(r, scopeA, "a", func(tx *Tx, rec *Record) error {
		if err := rec.SetSecret(ctx, s, "other", []byte("o1")); err != nil {
			return err
		}
		return tx.Update(rec)
	})
	if err != nil || s.opened != 0 {
		t.Fatalf("writing one secret: %v, opened %d others", err, s.opened)
	}
	got, _, _ := r.Get(ctx, scopeA, widget, "a")
	plain, err := got.OpenSecrets(ctx, s)
	if err != nil || string(plain["key"]) != "k1" || string(plain["other"]) != "o1" {
		t.Fatalf("open: %q %v", plain, err)
	}
	moved := got
	moved.ID = "another"
	if _, err := moved.OpenSecrets(ctx, s); err == nil {
		t.Error("secrets open in another record")
	}
	moved = got
	moved.Sealed = bytes.Replace(bytes.Clone(got.Sealed), []byte(`"other"`), []byte(`"third"`), 1)
	if _, err := moved.OpenSecrets(ctx, s); err == nil {
		t.Error("a secret opens under another name")
	}
	if err := got.SetSecret(ctx, s, "key", nil); err != nil || got.HasSecret("key") || !got.HasSecret("other") {
		t.Errorf("removing one secret: %v", err)
	}
}
