package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Fingerprint tells apart how a server is called: its configuration and its sealed
// secrets. What else the record has is left out of configuration.
func Fingerprint(configuration any, sealed []byte) (string, error) {
	raw, err := json.Marshal([]any{configuration, sealed})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12]), err
}
