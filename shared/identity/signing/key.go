package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// Key is a signing key.
type Key struct {
	ID  string // its thumbprint (RFC 7638)
	Alg string // RS256 or ES256

	private crypto.Signer
	public  Public
}

// Public is the public half of a key in a key set (RFC 7517).
type Public struct {
	Kty string `json:"kty"`
	Use string `json:"use"`
	Alg string `json:"alg"`
	Kid string `json:"kid"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
}

var errKind = errors.New("signing: the key is neither of RSA with 2048 bits or more nor on the curve P-256")

// halfP256 is the length of each half of an ES256 signature.
const halfP256 = 32

var b64 = base64.RawURLEncoding.EncodeToString

func newKey(alg string, private crypto.Signer) (*Key, error) {
	k := &Key{Alg: alg, private: private, public: Public{Use: "sig", Alg: alg}}
	var print string
	switch p := private.Public().(type) {
	case *rsa.PublicKey:
		if alg != RS256 || p.N.BitLen() < bitsRSA {
			return nil, errKind
		}
		k.public.Kty, k.public.N, k.public.E = "RSA", b64(p.N.Bytes()), b64(big.NewInt(int64(p.E)).Bytes())
		print = fmt.Sprintf(`{"e":%q,"kty":"RSA","n":%q}`, k.public.E, k.public.N)
	case *ecdsa.PublicKey:
		point, err := p.Bytes()
		if alg != ES256 || err != nil || len(point) != 1+2*halfP256 {
			return nil, errKind
		}
		k.public.Kty, k.public.Crv, k.public.X, k.public.Y = "EC", "P-256", b64(point[1:1+halfP256]), b64(point[1+halfP256:])
		print = fmt.Sprintf(`{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, k.public.X, k.public.Y)
	default:
		return nil, errKind
	}
	sum := sha256.Sum256([]byte(print))
	k.ID = b64(sum[:])
	k.public.Kid = k.ID
	return k, nil
}

// Sign creates a JWS (RFC 7515): it adds alg and kid to header, and signs the protected header
// and the payload. It returns the header and the signature in base64url. The result is
// deterministic, also for ES256 (RFC 6979).
func (k *Key) Sign(header map[string]any, payload []byte) (protected, signature string, err error) {
	whole := map[string]any{"alg": k.Alg, "kid": k.ID}
	for name, v := range header {
		whole[name] = v
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		return "", "", err
	}
	protected = b64(raw)
	sum := sha256.Sum256([]byte(protected + "." + b64(payload)))
	sig, err := k.private.Sign(nil, sum[:], crypto.SHA256)
	if err == nil && k.Alg == ES256 {
		sig, err = halves(sig)
	}
	if err != nil {
		return "", "", fmt.Errorf("signing: %w", err)
	}
	return protected, b64(sig), nil
}

// halves converts an ECDSA signature to the form of JWS.
func halves(der []byte) ([]byte, error) {
	var s struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &s); err != nil {
		return nil, err
	}
	out := make([]byte, 2*halfP256)
	s.R.FillBytes(out[:halfP256])
	s.S.FillBytes(out[halfP256:])
	return out, nil
}
