// Package originauth admits only requests from the edge. The edge adds an origin secret to each
// request; each process has the digests of valid secrets: those of its deployment, and those
// added by rotations since, which are in a row of the tables. So only the process that rotates
// needs to read a rotated secret, and an installation continues to serve when its secret store
// is unavailable.
package originauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Header is the header with the origin secret.
const Header = "X-Gateway-Origin-Secret"

// Digest is the hash of an origin secret.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a secret.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// Times of reading the ring. A rotation waits longer than Longest between its steps.
const (
	maxAge      = 5 * time.Minute  // maximum age of the ring
	retryDelay  = 10 * time.Second // between reads for an unknown secret, and after a failed one
	readTimeout = 2 * time.Second  // of one read
)

// Longest is how long a process may use an outdated ring if the tables are available. A
// rotation waits at least this long between two steps.
const Longest = maxAge + retryDelay + readTimeout

// Read returns the ring written by rotations; an empty one before the first.
type Read func(context.Context) (Ring, error)

// Verifier verifies that requests are from the edge. A nil Verifier admits every request. It is
// safe for concurrent use.
type Verifier struct {
	deployed []Digest
	read     Read
	now      func() time.Time
	rejected func() // called for each rejection; may be nil
	current  atomic.Pointer[snapshot]
	reading  sync.Mutex // one at a time
}

// snapshot is immutable once it is stored.
type snapshot struct {
	accepted []Digest
	asOf     time.Time // of the last successful read
	tried    time.Time // start of the last read
}

// certain reports whether an unknown secret can be rejected definitively: the last read
// succeeded.
func (k *snapshot) certain() bool { return k.asOf.Equal(k.tried) }

// New returns a Verifier for the secrets of the deployment. read is nil without
// rotations; now is time.Now if nil.
func New(secrets []string, read Read, now func() time.Time) *Verifier {
	if now == nil {
		now = time.Now
	}
	d := &Verifier{read: read, now: now}
	for _, s := range secrets {
		if s != "" {
			d.deployed = append(d.deployed, DigestOf(s))
		}
	}
	d.current.Store(&snapshot{accepted: d.deployed})
	return d
}

// Verify returns nil if a request is from the edge, otherwise a fault: a 403, or a 503 if that
// cannot be determined yet.
func (d *Verifier) Verify(ctx context.Context, h http.Header) error {
	if d == nil {
		return nil
	}
	err := d.verify(ctx, h[Header])
	if err != nil && d.rejected != nil {
		d.rejected()
	}
	return err
}

// OnRejected sets a function that is called for each rejected request. Call it before the
// first request.
func (d *Verifier) OnRejected(f func()) *Verifier {
	if d != nil {
		d.rejected = f
	}
	return d
}

func (d *Verifier) verify(ctx context.Context, sent []string) error {
	if len(sent) != 1 || sent[0] == "" {
		return rejected()
	}
	presented := DigestOf(sent[0])
	k := d.current.Load()
	if d.read != nil && d.now().Sub(k.asOf) >= maxAge && d.now().Sub(k.tried) >= retryDelay && d.reading.TryLock() {
		k = d.refresh(ctx) // concurrent requests use the old snapshot
		d.reading.Unlock()
	}
	if k.accepts(&presented) {
		return nil
	}
	if d.read != nil {
		// The secret may be new since the last read; all requests with it wait for one
		// read.
		d.reading.Lock()
		if k = d.current.Load(); d.now().Sub(k.tried) >= retryDelay {
			k = d.refresh(ctx)
		}
		d.reading.Unlock()
	}
	switch {
	case k.accepts(&presented):
		return nil
	case !k.certain():
		return fault.Unavailable(nil)
	}
	return rejected()
}

func rejected() *fault.Fault {
	return fault.New(fault.NotAllowed, "", "This address accepts only requests from the gateway's edge; call the public address of the gateway")
}

// refresh reads the ring. It keeps the current snapshot on failure.
func (d *Verifier) refresh(ctx context.Context) *snapshot {
	k := *d.current.Load()
	k.tried = d.now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout) // other requests depend on it too
	defer cancel()
	if ring, err := d.read(ctx); err == nil {
		k.accepted, k.asOf = ring.accepted(d.deployed), k.tried
	}
	d.current.Store(&k)
	return &k
}

// accepts compares with all digests in constant time.
func (k *snapshot) accepts(presented *Digest) bool {
	same := 0
	for i := range k.accepted {
		same |= subtle.ConstantTimeCompare(presented[:], k.accepted[i][:])
	}
	return same == 1
}

// Ring is the set of secrets after rotations.
type Ring struct {
	Live []Digest // at most two: a new or an old one beside the one in use
	// Retired are former secrets, the newest last. A process that was deployed with one
	// of them must no longer accept it.
	Retired []Digest
}

// maxRetired limits the row. With one rotation per quarter it covers deployments of more
// than ten years.
const maxRetired = 50

// row is the key of the ring, in the table that every serving process may read.
var row = store.System("ORIGIN").Key("SECRETS")

// accepted returns the live digests and those of the deployment that no rotation has
// retired: an installation that was recreated beside its old tables has a secret that is
// not in the ring.
func (r Ring) accepted(deployed []Digest) []Digest {
	out := slices.Clone(r.Live)
	for _, d := range deployed {
		if !slices.Contains(r.Retired, d) && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// WithSecrets returns the ring with the digests of the secrets as live; former live ones that
// are not among them become retired.
func (r Ring) WithSecrets(secrets ...string) Ring {
	var out Ring
	for _, s := range secrets {
		if d := DigestOf(s); s != "" && !slices.Contains(out.Live, d) {
			out.Live = append(out.Live, d)
		}
	}
	slices.SortFunc(out.Live, func(a, b Digest) int { return bytes.Compare(a[:], b[:]) })
	for _, d := range slices.Concat(r.Retired, r.Live) {
		if !slices.Contains(out.Live, d) && !slices.Contains(out.Retired, d) {
			out.Retired = append(out.Retired, d)
		}
	}
	if n := len(out.Retired) - maxRetired; n > 0 {
		out.Retired = out.Retired[n:]
	}
	return out
}

// Equal reports whether both are equal.
func (r Ring) Equal(o Ring) bool {
	return slices.Equal(r.Live, o.Live) && slices.Equal(r.Retired, o.Retired)
}

// Load reads the ring, with a consistent read for a later change.
func Load(ctx context.Context, s store.Store, consistent bool) (Ring, error) {
	it, _, err := s.Table(store.Keys).Get(ctx, row, consistent)
	if err != nil {
		return Ring{}, fmt.Errorf("door: %w", err)
	}
	live, err1 := digests(it.Bytes("live"))
	retired, err2 := digests(it.Bytes("retired"))
	return Ring{Live: live, Retired: retired}, errors.Join(err1, err2)
}

// Save writes the ring.
func (r Ring) Save(ctx context.Context, s store.Store) error {
	it := store.Item{"live": joined(r.Live)}
	if len(r.Retired) > 0 {
		it["retired"] = joined(r.Retired)
	}
	if err := s.Table(store.Keys).Put(ctx, store.Row{Key: row, Item: it}); err != nil {
		return fmt.Errorf("door: %w", err)
	}
	return nil
}

// ForStore returns the Verifier of a process that was deployed with secrets and has
// rotations in s; nil without secrets.
func ForStore(secrets []string, s store.Store) *Verifier {
	if len(secrets) == 0 {
		return nil
	}
	return New(secrets, func(ctx context.Context) (Ring, error) { return Load(ctx, s, false) }, nil)
}

func digests(b []byte) ([]Digest, error) {
	if len(b)%len(Digest{}) != 0 {
		return nil, fmt.Errorf("originauth: %d bytes are not digests", len(b))
	}
	var out []Digest
	for part := range slices.Chunk(b, len(Digest{})) {
		out = append(out, Digest(part))
	}
	return out, nil
}

func joined(of []Digest) []byte {
	var b []byte
	for i := range of {
		b = append(b, of[i][:]...)
	}
	return b
}
