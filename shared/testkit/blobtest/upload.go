package blobtest

import (
	"bytes"
	"errors"
	"testing"

	"gateway/shared/blob"
)

func uploads(t *testing.T, b blob.Bucket) blob.Uploads {
	t.Helper()
	u, ok := b.(blob.Uploads)
	if !ok {
		t.Fatalf("%T writes no object part by part", b)
	}
	return u
}

func upload(t *testing.T, b blob.Bucket) {
	u := uploads(t, b)
	const key = "exports/org/file.jsonl"
	id, err := u.Begin(bg, key, `a "name".jsonl`)
	if err != nil || id == "" {
		t.Fatal(id, err)
	}
	whole := pattern(2*blob.MinPart + 1000)
	var tags []string
	for n, part := range [][]byte{whole[:blob.MinPart], whole[blob.MinPart : 2*blob.MinPart], whole[2*blob.MinPart:]} {
		if n == 1 { // a part that is put again replaces the first
			if _, err := u.Part(bg, key, id, n+1, pattern(blob.MinPart+1)); err != nil {
				t.Fatal(err)
			}
		}
		tag, err := u.Part(bg, key, id, n+1, part)
		if err != nil || tag == "" {
			t.Fatal(tag, err)
		}
		tags = append(tags, tag)
	}
	if _, err := b.Get(bg, key, 0); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("an object that is not complete: %v", err)
	}
	if keys, err := b.List(bg, "", "", 10); err != nil || len(keys) != 0 {
		t.Errorf("%v %v", keys, err)
	}
	if err := u.Complete(bg, key, id, tags); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(bg, key, 0); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%d bytes of %d, %v", len(got), len(whole), err)
	}
	if err := u.Complete(bg, key, id, tags); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("complete twice: %v", err)
	}
}

func noUpload(t *testing.T, b blob.Bucket) {
	u := uploads(t, b)
	const key = "exports/org/file.jsonl"
	id, err := u.Begin(bg, key, "file")
	if err != nil {
		t.Fatal(err)
	}
	tag, err := u.Part(bg, key, id, 1, pattern(10))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"../x"} {
		if err := u.Complete(bg, key, id, []string{tag, other}); err == nil {
			t.Errorf("a part that was never put: %v", err)
		}
	}
	if err := u.Abort(bg, key, id); err != nil {
		t.Error(err)
	}
	if err := u.Abort(bg, key, id); err != nil {
		t.Errorf("given up twice: %v", err)
	}
	if _, err := u.Part(bg, key, id, 2, pattern(10)); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("a part of what was given up: %v", err)
	}
	if err := u.Complete(bg, key, id, []string{tag}); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("complete what was given up: %v", err)
	}
	if _, err := b.Get(bg, key, 0); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"/x", "a/../b", ""} {
		if _, err := u.Begin(bg, bad, "x"); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
