package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Algorithms of RFC 7518.
const (
	RS256 = "RS256"
	ES256 = "ES256"
)

// Times of keys. A new key is published for lead before it signs, so that caches of the key set
// contain it by then. A former key stays published for behind, which is longer than the life of
// anything that it signed.
const (
	life   = 90 * 24 * time.Hour
	lead   = 7 * 24 * time.Hour
	behind = 30 * 24 * time.Hour
)

// bitsRSA is the length of generated keys.
const bitsRSA = 2048

// stored is the sealed form of a key.
type stored struct {
	Alg     string `json:"alg"`
	From    int64  `json:"from"` // when it begins to sign, in Unix seconds
	Private []byte `json:"private"`
}

// ring contains all keys of an installation; those of one algorithm are ordered by From.
type ring []stored

// generate returns a new key.
func generate(alg string, from time.Time) (stored, error) {
	var private crypto.Signer
	var err error
	if alg == RS256 {
		private, err = rsa.GenerateKey(rand.Reader, bitsRSA)
	} else {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return stored{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	return stored{alg, from.Unix(), der}, err
}

// next returns the current ring; changed is false if it is unchanged.
func (r ring) next(now time.Time) (out ring, changed bool, err error) {
	for _, alg := range []string{RS256, ES256} {
		keys, ahead := r.of(alg), false
		active := -1
		for i, k := range keys {
			if k.From <= now.Unix() {
				active = i
			} else {
				ahead = true
			}
		}
		for i, k := range keys {
			if i < active && time.Unix(keys[i+1].From, 0).Add(behind).Before(now) {
				changed = true
				continue
			}
			out = append(out, k)
		}
		from := now
		if active >= 0 {
			due := time.Unix(keys[active].From, 0).Add(life)
			if ahead || now.Before(due.Add(-lead)) {
				continue
			}
			if from = due; from.Before(now.Add(lead)) {
				from = now.Add(lead)
			}
		} else if ahead {
			continue // the clock is behind those of other processes
		}
		k, err := generate(alg, from)
		if err != nil {
			return nil, false, err
		}
		out, changed = append(out, k), true
	}
	return out, changed, nil
}

func (r ring) of(alg string) (out ring) {
	for _, k := range r {
		if k.Alg == alg {
			out = append(out, k)
		}
	}
	return out
}

// active returns the current key of an algorithm. If the clock is behind, it is the first one.
func (r ring) active(alg string, now time.Time) (*Key, error) {
	var found *stored
	for i := range r {
		if k := &r[i]; k.Alg == alg && (found == nil || k.From <= now.Unix()) {
			found = k
		}
	}
	if found == nil {
		return nil, errNone
	}
	return found.key()
}

func (s *stored) key() (*Key, error) {
	private, err := x509.ParsePKCS8PrivateKey(s.Private)
	if err != nil {
		return nil, fmt.Errorf("signing: a stored key: %w", err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("signing: a stored key of %s does not sign", s.Alg)
	}
	return newKey(s.Alg, signer)
}

// readRing decodes the sealed form.
func readRing(plain []byte) (r ring, err error) {
	if err = json.Unmarshal(plain, &r); err != nil {
		return nil, fmt.Errorf("signing: stored keys: %w", err)
	}
	return r, nil
}

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

// Env is the environment variable with the operator's key.
const Env = "JWT_PRIVATE_KEY"

var errConfigured = errors.New(Env + " must be private keys of RSA in PEM (PKCS #8 or #1), of 2048 bits or more, without a password")

// Check returns an error for an invalid value of Env, without quoting it.
func Check(value string) error {
	_, err := parseConfigured(value)
	return err
}

// parseConfigured parses the keys of Env: the first one signs, all are published. \n counts as a line
// end, because many environments do not allow line ends in variables.
func parseConfigured(value string) (out []*Key, err error) {
	rest := []byte(strings.ReplaceAll(strings.TrimSpace(value), `\n`, "\n"))
	for len(rest) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errConfigured
		}
		key, err := readBlock(block)
		if err != nil {
			return nil, fmt.Errorf("%w (key %d)", errConfigured, len(out)+1)
		}
		out = append(out, key)
		rest = []byte(strings.TrimSpace(string(rest)))
	}
	return out, nil
}

func readBlock(block *pem.Block) (*Key, error) {
	var private any
	var err error
	if block.Type == "RSA PRIVATE KEY" {
		private, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	} else {
		private, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, errKind
	}
	return newKey(RS256, signer)
}
