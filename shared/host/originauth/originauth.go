// Package originauth lets in what came through the edge and nothing else. The edge adds an origin
// secret to each request; a process behind it knows the digests of valid secrets: those of
// its deployment, and those that rotations have added since, which are in a row of the
// tables. So only the process that rotates needs to read a rotated secret, and an
// installation goes on serving when its secret store does not answer.
package originauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
)

// Header carries the origin secret.
const Header = "X-Gateway-Origin-Secret"

// Digest stands for an origin secret.
type Digest [sha256.Size]byte

// DigestOf is the digest of a secret.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// Times of reading what rotations have written. A rotation waits longer than
// longest between its steps.
const (
	fresh = 5 * time.Minute  // how old what was read may be
	pause = 10 * time.Second // between readings for a secret that is not known, and after a failed one
	limit = 2 * time.Second  // of one reading
)

// Longest is how long a process may rely on what it has read, as long as the tables answer.
// Between two steps of a rotation at least this long is waited.
const Longest = fresh + pause + limit

// Read gives what rotations have written; an empty ring when there was none.
type Read func(context.Context) (Ring, error)

// Door knows who is let in. A nil door stands open. It is safe for concurrent use.
type Door struct {
	deployed []Digest
	read     Read
	now      func() time.Time
	refused  func() // told of each refusal; nil: nobody
	known    atomic.Pointer[known]
	reading  sync.Mutex // one at a time
}

// known does not change once it is in a door.
type known struct {
	accepted []Digest
	asOf     time.Time // of the last reading that succeeded
	tried    time.Time // the start of the last one
}

// certain tells whether an unknown caller can be refused for certain: the last reading
// succeeded.
func (k *known) certain() bool { return k.asOf.Equal(k.tried) }

// New makes a door for the secrets at deployment. read may be nil: there are no
// rotations. now nil: time.Now.
func New(secrets []string, read Read, now func() time.Time) *Door {
	if now == nil {
		now = time.Now
	}
	d := &Door{read: read, now: now}
	for _, s := range secrets {
		if s != "" {
			d.deployed = append(d.deployed, DigestOf(s))
		}
	}
	d.known.Store(&known{accepted: d.deployed})
	return d
}

// Enter tells whether a request came through the edge: nil, or a fault, which is a
// 403, or a 503 where that cannot be known yet.
func (d *Door) Enter(ctx context.Context, h http.Header) error {
	if d == nil {
		return nil
	}
	err := d.enter(ctx, h[Header])
	if err != nil && d.refused != nil {
		d.refused()
	}
	return err
}

// OnRefused has f called for each request that is not let in. Call it before the
// first.
func (d *Door) OnRefused(f func()) *Door {
	if d != nil {
		d.refused = f
	}
	return d
}

func (d *Door) enter(ctx context.Context, sent []string) error {
	if len(sent) != 1 || sent[0] == "" {
		return refused()
	}
	presented := DigestOf(sent[0])
	k := d.known.Load()
	if d.read != nil && d.now().Sub(k.asOf) >= fresh && d.now().Sub(k.tried) >= pause && d.reading.TryLock() {
		k = d.renew(ctx) // who comes meanwhile is judged by what is known
		d.reading.Unlock()
	}
	if k.accepts(&presented) {
		return nil
	}
	if d.read != nil {
		// The secret may have been rotated in since; all who come with it wait for one
		// reading.
		d.reading.Lock()
		if k = d.known.Load(); d.now().Sub(k.tried) >= pause {
			k = d.renew(ctx)
		}
		d.reading.Unlock()
	}
	switch {
	case k.accepts(&presented):
		return nil
	case !k.certain():
		return fault.Unavailable(nil)
	}
	return refused()
}

func refused() *fault.Fault {
	return fault.New(fault.NotAllowed, "", "This address answers the gateway's edge alone; call the gateway by its own address")
}

// renew reads the ring. What is known stays when that fails.
func (d *Door) renew(ctx context.Context) *known {
	k := *d.known.Load()
	k.tried = d.now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit) // the others are judged by it too
	defer cancel()
	if ring, err := d.read(ctx); err == nil {
		k.accepted, k.asOf = ring.accepted(d.deployed), k.tried
	}
	d.known.Store(&k)
	return &k
}

// accepts compares with all, in the same time whatever is presented.
func (k *known) accepts(presented *Digest) bool {
	same := 0
	for i := range k.accepted {
		same |= subtle.ConstantTimeCompare(presented[:], k.accepted[i][:])
	}
	return same == 1
}
