package seal

import (
	"context"
	"encoding/binary"
)

// KeyID names a master key within an installation: the first bytes of a hash.
type KeyID [8]byte

// Context is the purpose of a data key. The key service authenticates it: a wrapped key
// opens only under the same context, and permissions for the service can depend on it
// (credentials are in another table than logged bodies).
type Context struct {
	Org     string
	Purpose string // the table of the binding
}

// Append appends the only encoding of c, for wrappers that authenticate it themselves.
func (c Context) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c.Org)))
	dst = append(dst, c.Org...)
	dst = binary.AppendUvarint(dst, uint64(len(c.Purpose)))
	return append(dst, c.Purpose...)
}

// DataKey is a new data key.
type DataKey struct {
	Plain   []byte // 32 bytes
	Wrapped []byte // at most 65,535 bytes
	Master  KeyID
}

// Wrapper makes data keys and unwraps them: the key service.
type Wrapper interface {
	// Generate makes a data key for c.
	Generate(ctx context.Context, c Context) (DataKey, error)
	// Unwrap gives the plain data key. The error ErrRefused is final (wrong context,
	// altered, unknown master key); any other error means that the service could not
	// answer.
	Unwrap(ctx context.Context, c Context, master KeyID, wrapped []byte) ([]byte, error)
}
