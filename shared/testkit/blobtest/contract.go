package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/blob"
)

// Run runs the contract; open gives an empty bucket.
func Run(t *testing.T, open func(t *testing.T) blob.Bucket) {
	for _, c := range []struct {
		name string
		test func(*testing.T, blob.Bucket)
	}{
		{"an object is read as it was written", roundTrip},
		{"a put replaces the whole object", replace},
		{"an absent object is ErrNotFound", absent},
		{"get refuses an object above its bound", bound},
		{"open streams a range and tells the size", ranges},
		{"delete removes and forgives", remove},
		{"erase blanks stretches and nothing else", erase},
		{"list gives keys in byte order", listOrder},
		{"list pages by after and limit", listPages},
		{"keys that lead elsewhere are refused", badKeys},
		{"readers see an old object or a new one", atomic},
		{"a cancelled context ends a call", cancelled},
		{"parts become one object when they are complete", upload},
		{"what is no upload, or not its parts, is ErrNoUpload", noUpload},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

var bg = context.Background()

func put(t *testing.T, b blob.Bucket, key string, body []byte) {
	t.Helper()
	if err := b.Put(bg, key, body); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func pattern(n int) []byte {
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(i*7 + i>>8)
	}
	return body
}

func erase(t *testing.T, b blob.Bucket) {
	const size = 200_000
	body, want := pattern(size), pattern(size)
	put(t, b, "a/pack", body)
	put(t, b, "a/other", body)
	spans := []blob.Span{{Offset: 3, Length: 4}, {Offset: 10_000, Length: 70_000}, {Offset: size - 5, Length: 100}, {Offset: size, Length: 1}, {Offset: -1, Length: 5}, {Offset: 1, Length: 0}, {Offset: 9, Length: -9}}
	clear(want[3:7])
	clear(want[10_000:80_000])
	clear(want[size-5:])
	for range 2 { // a second time changes nothing
		if err := blob.Erase(bg, b, "a/pack", spans); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Get(bg, "a/pack", 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("after the erasing: %d bytes, equal %v, %v", len(got), bytes.Equal(got, want), err)
		}
	}
	if got, err := b.Get(bg, "a/other", 0); err != nil || !bytes.Equal(got, body) {
		t.Errorf("another object: %d bytes, %v", len(got), err)
	}
	if err := blob.Erase(bg, b, "a/absent", spans); err != nil {
		t.Errorf("an absent object: %v", err)
	}
	if _, err := b.Get(bg, "a/absent", 0); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("an absent object afterwards: %v", err)
	}
}

func roundTrip(t *testing.T, b blob.Bucket) {
	for _, n := range []int{0, 1, 4096, 3 << 20} {
		key := fmt.Sprintf("org-1/bodies/%d.bin", n)
		want := pattern(n)
		put(t, b, key, want)
		got, err := b.Get(bg, key, 0)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
	}
	for _, key := range []string{"a b+c&d=e/100%.txt", "größe/日本", "x?y#z", "deep/" + strings.Repeat("d/", 40) + "leaf"} {
		put(t, b, key, []byte(key))
		if got, err := b.Get(bg, key, 0); err != nil || string(got) != key {
			t.Errorf("%q: %q, %v", key, got, err)
		}
	}
}

func replace(t *testing.T, b blob.Bucket) {
	put(t, b, "k", pattern(1000))
	put(t, b, "k", []byte("short"))
	if got, err := b.Get(bg, "k", 0); err != nil || string(got) != "short" {
		t.Errorf("%q, %v", got, err)
	}
}

func absent(t *testing.T, b blob.Bucket) {
	put(t, b, "dir/object", []byte("x"))
	for _, key := range []string{"nothing", "dir/nothing", "dir", "dir/object/below"} {
		if _, err := b.Get(bg, key, 0); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("get %s: %v", key, err)
		}
		if _, _, err := b.Open(bg, key, 0, -1); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("open %s: %v", key, err)
		}
		if _, _, err := b.Open(bg, key, 0, 0); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("open %s for nothing: %v", key, err)
		}
	}
}

func bound(t *testing.T, b blob.Bucket) {
	put(t, b, "k", pattern(100))
	if got, err := b.Get(bg, "k", 100); err != nil || len(got) != 100 {
		t.Errorf("at the bound: %d, %v", len(got), err)
	}
	if _, err := b.Get(bg, "k", 99); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("above the bound: %v", err)
	}
}

func ranges(t *testing.T, b blob.Bucket) {
	body := pattern(1000)
	put(t, b, "k", body)
	put(t, b, "empty", nil)
	for _, c := range []struct {
		key            string
		offset, length int64
		want           []byte
		err            error
	}{
		{"k", 0, -1, body, nil},
		{"k", 0, 10, body[:10], nil},
		{"k", 990, -1, body[990:], nil},
		{"k", 990, 5, body[990:995], nil},
		{"k", 990, 500, body[990:], nil},
		{"k", 999, 1, body[999:], nil},
		{"k", 5, 0, nil, nil},
		{"k", 1000, 0, nil, nil},
		{"k", 1000, 1, nil, blob.ErrRange},
		{"k", 1000, -1, nil, blob.ErrRange},
		{"k", 2000, 0, nil, blob.ErrRange},
		{"k", -1, 5, nil, blob.ErrRange},
		{"empty", 0, -1, nil, nil},
		{"empty", 0, 1, nil, blob.ErrRange},
	} {
		rc, size, err := b.Open(bg, c.key, c.offset, c.length)
		if c.err != nil {
			if !errors.Is(err, c.err) {
				t.Errorf("%s [%d,%d): %v, want %v", c.key, c.offset, c.length, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s [%d,%d): %v", c.key, c.offset, c.length, err)
			continue
		}
		got, err := io.ReadAll(rc)
		rc.Close()
		wantSize := int64(1000)
		if c.key == "empty" {
			wantSize = 0
		}
		if err != nil || !bytes.Equal(got, c.want) || size != wantSize {
			t.Errorf("%s [%d,%d): %d bytes of %d, %v", c.key, c.offset, c.length, len(got), size, err)
		}
	}
}

func remove(t *testing.T, b blob.Bucket) {
	put(t, b, "a/b/c", []byte("1"))
	put(t, b, "a/d", []byte("2"))
	for range 2 {
		if err := b.Delete(bg, "a/b/c"); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"never", "a", "a/d/below"} {
		if err := b.Delete(bg, key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	if _, err := b.Get(bg, "a/b/c", 0); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("deleted object: %v", err)
	}
	keys, err := b.List(bg, "", "", 10)
	if diff := cmp.Diff([]string{"a/d"}, keys); diff != "" || err != nil {
		t.Errorf("%s, %v", diff, err)
	}
	put(t, b, "a/b/c", []byte("3"))
	if got, err := b.Get(bg, "a/b/c", 0); err != nil || string(got) != "3" {
		t.Errorf("written again: %q, %v", got, err)
	}
}

// listed holds neighbors that sort differently as names and as paths.
var listed = []string{"a-b", "a.b/x", "a/b", "a/b-c", "a/b.d/e", "a0", "b/1", "b/10", "b/2", "c/x/y/z", "c/x0", "ä"}

func fill(t *testing.T, b blob.Bucket) []string {
	t.Helper()
	keys := slices.Clone(listed)
	keys = append(keys, "a+b")
	for _, k := range keys {
		put(t, b, k, []byte(k))
	}
	slices.Sort(keys)
	return keys
}

func listOrder(t *testing.T, b blob.Bucket) {
	all := fill(t, b)
	for _, prefix := range []string{"", "a", "a/", "a/b", "a/b.", "b/1", "c/x", "c/x/", "c/x/y/z", "zz", "a//", "/", "ä"} {
		var want []string
		for _, k := range all {
			if strings.HasPrefix(k, prefix) {
				want = append(want, k)
			}
		}
		got, err := b.List(bg, prefix, "", 100)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("prefix %q: %v %s", prefix, err, diff)
		}
	}
}

func listPages(t *testing.T, b blob.Bucket) {
	all := fill(t, b)
	for _, limit := range []int{1, 2, 5, 100} {
		var got []string
		for after := ""; ; {
			page, err := b.List(bg, "", after, limit)
			if err != nil || len(page) > limit {
				t.Fatalf("limit %d: %d keys, %v", limit, len(page), err)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			after = page[len(page)-1]
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
	for _, after := range []string{"a/b", "a/b.d", "a/", "a/zzz", "b", "~"} {
		var want []string
		for _, k := range all {
			if k > after {
				want = append(want, k)
			}
		}
		got, err := b.List(bg, "", after, 100)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("after %q: %v %s", after, err, diff)
		}
	}
	if got, err := b.List(bg, "", "", 0); len(got) != 0 || err != nil {
		t.Errorf("limit 0: %v, %v", got, err)
	}
}

func badKeys(t *testing.T, b blob.Bucket) {
	for _, key := range []string{"", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".partial/x", "a\x00b", "a\\b", strings.Repeat("k/", 600)} {
		if b.Put(bg, key, nil) == nil {
			t.Errorf("put %q passed", key)
		}
		if _, err := b.Get(bg, key, 0); err == nil {
			t.Errorf("get %q passed", key)
		}
		if _, _, err := b.Open(bg, key, 0, -1); err == nil {
			t.Errorf("open %q passed", key)
		}
		if b.Delete(bg, key) == nil {
			t.Errorf("delete %q passed", key)
		}
	}
}

func atomic(t *testing.T, b blob.Bucket) {
	const writers, rounds = 4, 25
	versions := make([][]byte, writers)
	for i := range versions {
		versions[i] = bytes.Repeat([]byte{byte('a' + i)}, 10_000+i*5000)
	}
	put(t, b, "x/y/shared", versions[0])
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range rounds {
				if err := b.Put(bg, "x/y/shared", versions[i]); err != nil {
					t.Error(err)
				}
				// Other keys of the same directory come and go meanwhile.
				own := fmt.Sprintf("x/z%d/own", i)
				if err := errors.Join(b.Put(bg, own, versions[i]), b.Delete(bg, own)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range rounds {
				got, err := b.Get(bg, "x/y/shared", 0)
				if err != nil || len(got) == 0 || !bytes.Equal(got, versions[got[0]-'a']) {
					t.Errorf("read %d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}

func cancelled(t *testing.T, b blob.Bucket) {
	put(t, b, "k", []byte("x"))
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, getErr := b.Get(ctx, "k", 0)
	_, _, openErr := b.Open(ctx, "k", 0, -1)
	_, listErr := b.List(ctx, "", "", 10)
	for what, err := range map[string]error{"put": b.Put(ctx, "k", nil), "delete": b.Delete(ctx, "k"), "get": getErr, "open": openErr, "list": listErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", what, err)
		}
	}
}
