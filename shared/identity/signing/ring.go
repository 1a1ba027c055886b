package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"fmt"
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
