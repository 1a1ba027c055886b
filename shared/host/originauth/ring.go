package originauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"gateway/shared/store"
)

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

// With returns the ring with the digests of the secrets as live; former live ones that
// are not among them become retired.
func (r Ring) With(secrets ...string) Ring {
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
		return nil, fmt.Errorf("door: %d bytes are no digests", len(b))
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
