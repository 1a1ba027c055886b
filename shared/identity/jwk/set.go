package jwk

import (
	"encoding/json"
	"errors"
	"slices"
)

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
