package seal

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

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
var errUnbound = errors.New("seal: a binding needs an organisation and a table")

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
