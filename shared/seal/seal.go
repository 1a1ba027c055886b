// Package seal encrypts what must not be readable where it is stored: provider credentials
// and logged bodies. Each organisation has data keys, wrapped by a master key (KMS, or a
// key file on a laptop). The data is encrypted by AES-256-GCM with its place as additional
// data, so that a sealed value cannot be moved to another row or tenant.
package seal

import "context"

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
