// Package seal encrypts what must not be readable where it is stored: provider credentials
// and logged bodies. Each organization has data keys, wrapped by a master key (KMS, or a
// key file on a laptop). The data is encrypted by AES-256-GCM with its place as additional
// data, so that a sealed value cannot be moved to another row or tenant.
package seal

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"
)

// Binding is the place that a sealed value belongs to. It is authenticated, not
// stored: opening needs the same Binding.
type Binding struct {
	Org     string // encryption context of the data key
	Table   string
	PK, SK  string
	Version int64
}

// Sealer seals and opens. Both are safe for concurrent use. Data keys are cached for five
// minutes, so that requests seldom call the key service.
type Sealer interface {
	Seal(ctx context.Context, b Binding, plain []byte) ([]byte, error)
	Open(ctx context.Context, b Binding, sealed []byte) ([]byte, error)
}

// cacheTime is how long a data key stays in memory, and is used for sealing.
const cacheTime = 5 * time.Minute

// Envelope is the Sealer over a key service. If the service does not answer, that is a 503
// fault (service_unavailable); a value that cannot be opened gives ErrRefused.
type Envelope struct {
	ring keyring
}

var _ Sealer = (*Envelope)(nil)

// New returns a sealer with data keys from w. clock is time.Now when nil.
func New(w Wrapper, clock func() time.Time) *Envelope {
	if clock == nil {
		clock = time.Now
	}
	return &Envelope{ring: keyring{
		wrapper: w, clock: clock, ttl: cacheTime,
		sealing: map[Context]*dataKey{}, opening: map[string]*dataKey{}, flights: map[string]*flight{},
	}}
}

// errUnbound is a mistake of the program.
var errUnbound = errors.New("seal: a binding needs an organization and a table")

// scratch holds the additional data of one call.
type scratch struct{ aad []byte }

var scratches = sync.Pool{New: func() any { return &scratch{aad: make([]byte, 0, 512)} }}

// Seal encrypts plain for the place b.
func (s *Envelope) Seal(ctx context.Context, b Binding, plain []byte) ([]byte, error) {
	return s.AppendSeal(ctx, nil, b, plain)
}

// Writer is a value that writes itself. Size is never less than what Append writes.
type Writer interface {
	Size() int
	Append(dst []byte) []byte
}

// SealWritten is AppendSeal of what plain writes. plain writes directly into the place
// where it is sealed, so that it is in memory only once.
func (s *Envelope) SealWritten(ctx context.Context, dst []byte, b Binding, plain Writer) ([]byte, error) {
	return s.seal(ctx, dst, &b, nil, plain)
}

// AppendSeal is Seal into dst, which grows at most once. plain and dst must not overlap. If dst
// has capacity and the organization's key is cached, nothing is allocated.
func (s *Envelope) AppendSeal(ctx context.Context, dst []byte, b Binding, plain []byte) ([]byte, error) {
	return s.seal(ctx, dst, &b, plain, nil)
}

// seal seals plain, or what written writes if written is not nil.
func (s *Envelope) seal(ctx context.Context, dst []byte, b *Binding, plain []byte, written Writer) ([]byte, error) {
	if b.Org == "" || b.Table == "" {
		return dst, errUnbound
	}
	size := len(plain)
	if written != nil {
		size = written.Size()
	}
	for {
		k, err := s.ring.current(ctx, Context{Org: b.Org, Purpose: b.Table})
		if err != nil {
			return dst, err
		}
		out := slices.Grow(dst, headBytes+len(k.wrapped)+nonceBytes+size+tagBytes)
		out = appendHead(out, k.master, k.wrapped)
		out, ok := k.appendNonce(out)
		if !ok {
			continue // the key is used up; the next look-up makes another
		}
		sc := scratches.Get().(*scratch)
		sc.aad = appendBinding(sc.aad[:0], b)
		at := len(out)
		if written != nil {
			out = written.Append(out)
			plain = out[at:]
		}
		out = k.aead.Seal(out[:at], out[at-nonceBytes:at], plain, sc.aad)
		scratches.Put(sc)
		return out, nil
	}
}

// Open decrypts what Seal made for the same place.
func (s *Envelope) Open(ctx context.Context, b Binding, sealed []byte) ([]byte, error) {
	return s.AppendOpen(ctx, nil, b, sealed)
}

// AppendOpen is Open into dst; sealed and dst must not overlap. On an error dst
// is returned as it was.
func (s *Envelope) AppendOpen(ctx context.Context, dst []byte, b Binding, sealed []byte) ([]byte, error) {
	if b.Org == "" || b.Table == "" {
		return dst, errUnbound
	}
	e, ok := parseEnvelope(sealed)
	if !ok {
		return dst, ErrRefused
	}
	k, err := s.ring.unwrapped(ctx, Context{Org: b.Org, Purpose: b.Table}, &e)
	if err != nil {
		return dst, err
	}
	sc := scratches.Get().(*scratch)
	sc.aad = appendBinding(sc.aad[:0], &b)
	out, err := k.aead.Open(dst, e.nonce, e.sealed, sc.aad)
	scratches.Put(sc)
	if err != nil {
		return dst, ErrRefused
	}
	if out == nil {
		out = []byte{} // an empty value differs from an absent one
	}
	return out, nil
}

// Absent is the Sealer of a process without a key: it cannot seal or open anything.
type Absent struct{}

var errAbsent = errors.New("seal: this process has no key")

// Seal implements Sealer.
func (Absent) Seal(context.Context, Binding, []byte) ([]byte, error) { return nil, errAbsent }

// Open implements Sealer.
func (Absent) Open(context.Context, Binding, []byte) ([]byte, error) { return nil, errAbsent }

// A sealed value is
//
//	1 byte   version (1)
//	8 bytes  KeyID of the master key that wrapped the data key
//	2 bytes  length of the wrapped data key, big endian
//	n bytes  wrapped data key
//	12 bytes nonce
//	rest     AES-256-GCM of the value, with its 16-byte tag
//
// The additional data is the canonical binding; see appendBinding.
const (
	version    = 1
	headBytes  = 1 + len(KeyID{}) + 2
	nonceBytes = 12
	tagBytes   = 16
	keyBytes   = 32
)

// ErrRefused is returned by Open for a value that was altered or truncated, that belongs to
// another place, or that was sealed under an unknown master key. It is final: a retry gives the
// same result.
var ErrRefused = errors.New("seal: the value was altered, or belongs to another place or master key")

// envelope is a sealed value taken apart; its fields alias the value.
type envelope struct {
	master  KeyID
	wrapped []byte
	nonce   []byte
	sealed  []byte // with the tag
}

func parseEnvelope(b []byte) (envelope, bool) {
	var e envelope
	if len(b) < headBytes || b[0] != version {
		return e, false
	}
	copy(e.master[:], b[1:])
	n := int(binary.BigEndian.Uint16(b[headBytes-2:]))
	rest := b[headBytes:]
	if n == 0 || len(rest) < n+nonceBytes+tagBytes {
		return e, false
	}
	e.wrapped, rest = rest[:n], rest[n:]
	e.nonce, e.sealed = rest[:nonceBytes], rest[nonceBytes:]
	return e, true
}

func appendHead(dst []byte, master KeyID, wrapped []byte) []byte {
	dst = append(dst, version)
	dst = append(dst, master[:]...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(wrapped)))
	return append(dst, wrapped...)
}

// appendBinding appends the only encoding of a binding: the format's version, each text
// after its length, the version number. No two bindings have the same encoding.
func appendBinding(dst []byte, b *Binding) []byte {
	dst = append(dst, version)
	for _, s := range [...]string{b.Org, b.Table, b.PK, b.SK} {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	return binary.BigEndian.AppendUint64(dst, uint64(b.Version))
}
