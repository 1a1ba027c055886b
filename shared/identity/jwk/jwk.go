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
	"math/big"
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
