package seal

import (
	"encoding/binary"
	"errors"
)

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
