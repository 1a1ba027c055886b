// Package jwk parses public keys of key sets: RFC 7517, with the parameters of RFC 7518 and RFC
// 8037.
package jwk

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
)

// Limits of the modulus of an RSA key in bits, to limit the cost of verification.
const (
	MinRSA = 2048
	maxRSA = 16 << 10
)

// Key is one key of a set.
type Key struct {
	Kty, Use, Alg, Kid string
	N, E               string // of RSA
	Crv, X, Y          string // of curves
	D, P, K            json.RawMessage
}

// Secret reports whether the key is private or symmetric.
func (k *Key) Secret() bool { return k.D != nil || k.P != nil || k.K != nil }

// Public returns the key: *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey. ok is false
// for other types and for invalid keys.
func (k *Key) Public() (public crypto.PublicKey, ok bool) {
	switch k.Kty {
	case "RSA":
		p, ok := k.RSA()
		return p, ok
	case "EC":
		p, ok := k.curve()
		return p, ok
	case "OKP":
		x, err := octets(k.X)
		if k.Crv != "Ed25519" || err != nil || len(x) != ed25519.PublicKeySize {
			return nil, false
		}
		return ed25519.PublicKey(x), true
	}
	return nil, false
}

func octets(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

// RSA returns an RSA key. It may be too short to be used, see MinRSA.
func (k *Key) RSA() (*rsa.PublicKey, bool) {
	n, err := octets(k.N)
	if err != nil || len(n) == 0 || len(n) > maxRSA/8 {
		return nil, false
	}
	e, err := octets(k.E)
	if err != nil || len(e) == 0 || len(e) > 4 {
		return nil, false
	}
	exponent := 0
	for _, b := range e {
		exponent = exponent<<8 | int(b)
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: exponent}, exponent > 2 && exponent < 1<<31
}

// curve returns a key on a NIST curve. A point that is not on the curve is invalid.
func (k *Key) curve() (*ecdsa.PublicKey, bool) {
	curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}
	c, ok := curves[k.Crv]
	if !ok {
		return nil, false
	}
	size := (c.Params().BitSize + 7) / 8
	x, wrongX := octets(k.X)
	y, wrongY := octets(k.Y)
	if wrongX != nil || wrongY != nil || len(x) != size || len(y) != size {
		return nil, false
	}
	p, err := ecdsa.ParseUncompressedPublicKey(c, append(append([]byte{4}, x...), y...))
	return p, err == nil
}

// ReadSet returns the keys of a JWK set. Entries that are not keys of a form that this
// package reads are skipped (RFC 7517, section 5): an issuer may add kinds of keys at any
// time. Entries of unknown types, curves, uses and algorithms are returned; Public and the
// caller's own rules exclude them. A set without an entry is an error.
func ReadSet(raw []byte) ([]Key, error) {
	var whole struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil || len(whole.Keys) == 0 {
		return nil, errors.New(`must be a JSON object with "keys", an array of at least one key`)
	}
	keys := make([]Key, 0, len(whole.Keys))
	for _, one := range whole.Keys {
		var k Key
		if json.Unmarshal(one, &k) == nil {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// signatures are the algorithms of asymmetric signatures (RFC 7518, RFC 8037 and RFC 9864).
var signatures = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}

// Usable returns a set with only those entries that are supported public signature keys, for
// libraries that fail at the first unsupported entry. Text that is not a set is returned
// unchanged.
func Usable(raw []byte) []byte {
	var whole struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(raw, &whole) != nil || whole.Keys == nil {
		return raw
	}
	usable := make([]json.RawMessage, 0, len(whole.Keys))
	for _, one := range whole.Keys {
		var k Key
		if json.Unmarshal(one, &k) != nil || k.Secret() || k.Use != "" && k.Use != "sig" || k.Alg != "" && !slices.Contains(signatures, k.Alg) {
			continue
		}
		if _, ok := k.Public(); ok {
			usable = append(usable, one)
		}
	}
	whole.Keys = usable
	out, err := json.Marshal(&whole)
	if err != nil {
		return raw
	}
	return out
}
