package seal_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"gateway/shared/seal"
	"gateway/shared/seal/local"
)

var (
	bg    = context.Background()
	place = seal.Binding{Org: "org_2mF8", Table: "usage", PK: "ORG#org_2mF8#WS#ws_1", SK: "LOG#01J", Version: 1}
)

func sealer(t testing.TB) *seal.Envelope {
	t.Helper()
	w, err := local.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	return seal.New(w, nil)
}

func TestSealingIntoRoomAllocatesNothing(t *testing.T) {
	s, plain := sealer(t), make([]byte, 2048)
	dst := make([]byte, 0, len(plain)+seal.Overhead(60))
	sealed, err := s.AppendSeal(bg, dst, place, plain)
	if err != nil || len(sealed) != cap(dst) {
		t.Fatalf("%d bytes for %d, %v", len(sealed), cap(dst), err)
	}
	if n := testing.AllocsPerRun(200, func() { _, _ = s.AppendSeal(bg, dst[:0], place, plain) }); n >= 1 {
		t.Errorf("%v allocations to seal", n)
	}
	back := make([]byte, 0, len(plain))
	if n := testing.AllocsPerRun(200, func() { _, _ = s.AppendOpen(bg, back[:0], place, sealed) }); n >= 1 {
		t.Errorf("%v allocations to open", n)
	}
}

// text is a value that writes itself.
type text []byte

func (x *text) Size() int                { return len(*x) + 3 }
func (x *text) Append(dst []byte) []byte { return append(dst, *x...) }

func TestWhatWritesItselfIsSealedInItsPlace(t *testing.T) {
	s := sealer(t)
	for _, size := range []int{0, 1, 100, 2048, 100_000} {
		plain := text(bytes.Repeat([]byte("abc"), size)[:size])
		room := make([]byte, 0, plain.Size()+seal.Overhead(60))
		for name, dst := range map[string][]byte{"nil": nil, "with room": room, "behind other bytes": []byte("before")} {
			sealed, err := s.SealWritten(bg, dst, place, &plain)
			if err != nil || !bytes.HasPrefix(sealed, dst) {
				t.Fatalf("%s: %d bytes, %v", name, len(sealed), err)
			}
			if back, err := s.Open(bg, place, sealed[len(dst):]); err != nil || !bytes.Equal(back, plain) {
				t.Errorf("%s: %d of %d bytes came back, %v", name, len(back), size, err)
			}
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = s.SealWritten(bg, room, place, &plain) }); n >= 1 {
			t.Errorf("%v allocations to seal %d bytes", n, size)
		}
	}
}

// endless makes a key a call, without a master key, and counts.
type endless struct{ generated, unwrapped int }

func (e *endless) Generate(_ context.Context, c seal.Context) (seal.DataKey, error) {
	e.generated++
	wrapped := c.Append([]byte("wrapped "))
	return seal.DataKey{Plain: bytes.Repeat([]byte{7}, 32), Wrapped: wrapped}, nil
}

func (e *endless) Unwrap(context.Context, seal.Context, seal.KeyID, []byte) ([]byte, error) {
	e.unwrapped++
	return bytes.Repeat([]byte{7}, 32), nil
}

func TestTheCacheIsBounded(t *testing.T) {
	w, now := &endless{}, time.Unix(1_800_000_000, 0)
	s := seal.New(w, func() time.Time { return now })
	const orgs = 10_000
	for i := range orgs {
		b := place
		b.Org = string(rune('a'+i%26)) + time.Duration(i).String()
		if _, err := s.Seal(bg, b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.CachedKeys(); n > 2*4096 {
		t.Errorf("%d keys of %d organizations are cached", n, orgs)
	}
	now = now.Add(6 * time.Minute)
	if _, err := s.Seal(bg, place, nil); err != nil {
		t.Fatal(err)
	}
	if n := s.CachedKeys(); n != 2 {
		t.Errorf("%d keys are cached six minutes later, want the new one twice", n)
	}
}

func TestBadDataKeysAreNotUsed(t *testing.T) {
	for name, key := range map[string]seal.DataKey{
		"short":   {Plain: make([]byte, 16), Wrapped: []byte("w")},
		"unwrapd": {Plain: make([]byte, 32)},
		"long":    {Plain: make([]byte, 32), Wrapped: make([]byte, 1<<16)},
	} {
		if _, err := seal.New(fixed{key}, nil).Seal(bg, place, nil); err == nil {
			t.Errorf("%s: used", name)
		}
	}
}

type fixed struct{ key seal.DataKey }

func (f fixed) Generate(context.Context, seal.Context) (seal.DataKey, error) { return f.key, nil }
func (f fixed) Unwrap(context.Context, seal.Context, seal.KeyID, []byte) ([]byte, error) {
	return nil, errors.New("not here")
}

func FuzzOpen(f *testing.F) {
	w, err := local.Open(filepath.Join(f.TempDir(), "master.key"))
	if err != nil {
		f.Fatal(err)
	}
	s := seal.New(w, nil)
	good, err := s.Seal(bg, place, []byte("plain"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
	f.Add(good[:len(good)-1])
	f.Add(append(bytes.Clone(good), 0))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		if bytes.Equal(sealed, good) {
			return
		}
		if got, err := s.Open(bg, place, sealed); !errors.Is(err, seal.ErrRefused) || got != nil {
			t.Fatalf("%x gave %q, %v", sealed, got, err)
		}
	})
}

func BenchmarkAppendSeal2KB(b *testing.B) {
	s, plain := sealer(b), make([]byte, 2048)
	dst := make([]byte, 0, len(plain)+seal.Overhead(60))
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.AppendSeal(bg, dst, place, plain); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSeal2KB(b *testing.B) {
	s, plain := sealer(b), make([]byte, 2048)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Seal(bg, place, plain); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen2KB(b *testing.B) {
	s := sealer(b)
	sealed, err := s.Seal(bg, place, make([]byte, 2048))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(2048)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Open(bg, place, sealed); err != nil {
			b.Fatal(err)
		}
	}
}
