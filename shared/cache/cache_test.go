package cache

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gateway/shared/pricing"
	"gateway/shared/store"
)

func answer(text string) *Entry {
	e := &Entry{Body: []byte(`{"answer":"` + text + `"}`), Provider: "openai", Model: "gpt-4o-mini-2024", Finish: "stop", Cost: 12_345}
	e.Usage.Set(pricing.Input, 7)
	e.Usage.Set(pricing.Output, 0)
	return e
}

func TestCachedResponsesAreReturned(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		c, ctx := b.cache(), t.Context()
		k := mustKey(t, question())
		if e, err := c.Get(ctx, k, MaxAge); e != nil || err != nil {
			t.Fatalf("an empty cache gave %v, %v", e, err)
		}
		for _, text := range []string{"first", "second", strings.Repeat("large ", 100_000), "small again"} {
			want := answer(text)
			if err := c.Put(ctx, k, want, time.Hour); err != nil {
				t.Fatal(err)
			}
			if got := want.Expires.Sub(want.Stored); got != time.Hour {
				t.Errorf("kept for %v", got)
			}
			got, err := c.Get(ctx, k, MaxAge)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(pricing.Usage{})); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestAnswersExpire(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		c, ctx := b.cache(), t.Context()
		k := mustKey(t, question())
		if err := c.Put(ctx, k, answer("x"), time.Second); err != nil { // a minute is the least
			t.Fatal(err)
		}
		b.clock.advance(59 * time.Second)
		if e, err := c.Get(ctx, k, MaxAge); e == nil || err != nil {
			t.Fatalf("after 59 s: %v, %v", e, err)
		}
		b.clock.advance(2 * time.Second)
		if e, err := c.Get(ctx, k, MaxAge); e != nil || err != nil {
			t.Fatalf("after 61 s: %v, %v", e, err)
		}
	})
}

func TestMaxAgeExcludesOlderEntries(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		c, ctx := b.cache(), t.Context()
		k := mustKey(t, question())
		if err := c.Put(ctx, k, answer("x"), MaxAge); err != nil {
			t.Fatal(err)
		}
		b.clock.advance(2 * time.Hour)
		for age, want := range map[time.Duration]bool{time.Minute: false, 2 * time.Hour: false, 3 * time.Hour: true, 0: true, MaxAge: true} {
			if e, err := c.Get(ctx, k, age); (e != nil) != want || err != nil {
				t.Errorf("for %v: %v, %v", age, e != nil, err)
			}
		}
		b.clock.advance(DefaultAge)
		for age, want := range map[time.Duration]bool{0: false, MaxAge: true} {
			if e, err := c.Get(ctx, k, age); (e != nil) != want || err != nil {
				t.Errorf("later, for %v: %v, %v", age, e != nil, err)
			}
		}
	})
}

func TestOtherTenantsFindNothing(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		c, ctx := b.cache(), t.Context()
		k := mustKey(t, question())
		if err := c.Put(ctx, k, answer("secret"), time.Hour); err != nil {
			t.Fatal(err)
		}
		for _, sc := range []store.Scope{{Org: "acme", Workspace: "ws-2"}, {Org: "other", Workspace: "ws-1"}} {
			// Even the same sum leads to nothing in another tenant.
			if e, err := c.Get(ctx, Key{sc, k.sum}, MaxAge); e != nil || err != nil {
				t.Errorf("%v: %v, %v", sc, e, err)
			}
			// A row that was moved there cannot be opened.
			item, _, err := b.store.Table(table).Get(ctx, k.row(), true)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.store.Table(table).Put(ctx, store.Row{Key: Key{sc, k.sum}.row(), Item: item}); err != nil {
				t.Fatal(err)
			}
			if e, err := c.Get(ctx, Key{sc, k.sum}, MaxAge); e != nil || err == nil {
				t.Errorf("%v: a moved row gave %v, %v", sc, e, err)
			}
		}
	})
}

func TestNothingIsPlainAtRest(t *testing.T) {
	b := onSQLite(t)
	c, ctx := b.cache(), t.Context()
	const canary = "canary-of-the-tests"
	q := question()
	q.Body = []byte(`{"messages":[{"role":"user","content":"` + canary + `"}]}`)
	if err := c.Put(ctx, mustKey(t, q), answer(canary), time.Hour); err != nil {
		t.Fatal(err)
	}
	q.Namespace = "large"
	if err := c.Put(ctx, mustKey(t, q), answer(strings.Repeat(canary, 30_000)), time.Hour); err != nil {
		t.Fatal(err)
	}
	seen := 0
	look := func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		if bytes.Contains(raw, []byte(canary)) {
			t.Errorf("%s holds the plain text", path)
		}
		return nil
	}
	if err := filepath.Walk(filepath.Dir(b.path), look); err != nil {
		t.Fatal(err)
	}
	names, err := b.bucket.List(ctx, blobPrefix, "", 10)
	if err != nil || len(names) != 1 {
		t.Fatalf("answers in the bucket: %v, %v", names, err)
	}
	raw, err := b.bucket.Get(ctx, names[0], 0)
	if err != nil || bytes.Contains(raw, []byte(canary)) || seen == 0 {
		t.Errorf("the bucket holds the plain text, or nothing was looked at: %v %d", err, seen)
	}
}

func TestDamagedAnswersAreNoAnswers(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		c, ctx := b.cache(), t.Context()
		k := mustKey(t, question())
		if err := c.Put(ctx, k, answer("x"), time.Hour); err != nil {
			t.Fatal(err)
		}
		item, _, err := b.store.Table(table).Get(ctx, k.row(), true)
		if err != nil {
			t.Fatal(err)
		}
		good := item.Bytes(attrSealed)
		sealed := func(plain string) []byte {
			s, err := b.sealer.Seal(ctx, k.binding(), []byte(plain))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		damaged := map[string]store.Item{
			"cut": {attrSealed: good[:len(good)-1]}, "altered": {attrSealed: append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1)},
			"of nothing": {"other": "x"}, "without its blob": {attrBlob: true},
			"of another version": {attrSealed: sealed("\x02\x02{}{}")}, "with a long head": {attrSealed: sealed("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01{}")},
			"without a body": {attrSealed: sealed("\x01\x02{}")}, "of a bad head": {attrSealed: sealed("\x01\x02[]x")}, "empty": {attrSealed: sealed("")},
		}
		for name, item := range damaged {
			if err := b.store.Table(table).Put(ctx, store.Row{Key: k.row(), Item: item}); err != nil {
				t.Fatal(err)
			}
			before := c.Counts().Unreadable
			e, err := c.Get(ctx, k, MaxAge)
			if e != nil || err == nil || c.Counts().Unreadable != before+1 {
				t.Errorf("a row %s gave %v, %v", name, e, err)
			}
		}
	})
}

func TestUncacheableResponses(t *testing.T) {
	b := onSQLite(t)
	ctx := t.Context()
	k := mustKey(t, question())
	small := New(Options{Store: b.store, Sealer: b.sealer, Now: b.clock.now})
	for name, body := range map[string]int{"nothing": 0, "above the bound": MaxBody + 1} {
		if err := b.cache().Put(ctx, k, &Entry{Body: make([]byte, body)}, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := b.cache().Get(ctx, k, MaxAge); e != nil || err != nil {
			t.Errorf("%s was kept: %v %v", name, e, err)
		}
	}
	if err := small.Put(ctx, k, &Entry{Body: make([]byte, maxInline+1)}, 0); err != nil {
		t.Error(err)
	}
	if e, err := small.Get(ctx, k, MaxAge); e != nil || err != nil {
		t.Errorf("kept without a bucket: %v %v", e, err)
	}
	if err := b.cache().Put(ctx, k, &Entry{Body: bytes.Repeat([]byte("x"), MaxBody)}, 0); err != nil {
		t.Error(err)
	}
	if e, err := b.cache().Get(ctx, k, MaxAge); err != nil || e == nil || len(e.Body) != MaxBody {
		t.Errorf("the largest answer: %v", err)
	}
	if _, err := small.Get(ctx, k, MaxAge); err == nil {
		t.Error("an answer in a bucket that is not known")
	}
}

func TestSweepRemovesWhatNoRowRefersTo(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		c, ctx := b.cache(), t.Context()
		large := func() *Entry { return answer(strings.Repeat("large ", 80_000)) }
		put := func(name string, e *Entry, age time.Duration) Key {
			q := question()
			q.Namespace = name
			k := mustKey(t, q)
			if err := c.Put(ctx, k, e, age); err != nil {
				t.Fatal(err)
			}
			return k
		}
		stored := put("kept", large(), time.Hour)
		expired := put("expired", large(), time.Minute)
		smaller := put("smaller", large(), time.Hour)
		put("smaller", answer("x"), time.Hour)
		if err := b.bucket.Put(ctx, "cache/no-answer", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := b.bucket.Put(ctx, "bodies/x", []byte("x")); err != nil {
			t.Fatal(err)
		}
		b.clock.advance(2 * time.Minute)
		if err := c.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		left, err := b.bucket.List(ctx, "", "", 100)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"bodies/x", stored.blob()}, left); diff != "" {
			t.Error(diff)
		}
		for k, want := range map[Key]bool{stored: true, expired: false, smaller: true} {
			if e, err := c.Get(ctx, k, MaxAge); err != nil || (e != nil) != want {
				t.Errorf("after the sweep: %v %v, want %v", e != nil, err, want)
			}
		}
	})
}

func TestEntriesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 1<<35).Draw(t, "stored"), 0)
		want := &Entry{
			Body: []byte(rapid.StringN(1, 50, -1).Draw(t, "body")), Provider: rapid.String().Draw(t, "provider"), Model: rapid.String().Draw(t, "model"),
			Finish: rapid.String().Draw(t, "finish"), Cost: pricing.NanoDollars(rapid.Int64().Draw(t, "cost")), Stored: at, Expires: at.Add(time.Hour),
		}
		for _, c := range rapid.SliceOfN(rapid.IntRange(0, int(pricing.NumClasses)-1), 0, 5).Draw(t, "classes") {
			want.Usage.Set(pricing.Class(c), rapid.Int64().Draw(t, "n"))
		}
		want.Usage.Estimated = rapid.Bool().Draw(t, "estimated")
		raw, err := want.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseEntry(raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(pricing.Usage{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzEntry(f *testing.F) {
	raw, _ := answer("x").append(nil)
	f.Add(raw)
	f.Add([]byte("\x01\x02{}x"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := parseEntry(raw)
		if err != nil {
			if !errors.Is(err, errCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if len(e.Body) == 0 {
			t.Fatal("an answer of nothing")
		}
	})
}

func TestUnreachableStoreIsAnError(t *testing.T) {
	b := onSQLite(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := b.cache().Get(ctx, mustKey(t, question()), MaxAge); e != nil || err == nil {
		t.Errorf("%v, %v", e, err)
	}
}
