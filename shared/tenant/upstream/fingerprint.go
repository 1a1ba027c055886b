package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Fingerprint returns a value that changes with the connection settings of a server: its
// configuration and its sealed secrets.
func Fingerprint(configuration any, sealed []byte) (string, error) {
	raw, err := json.Marshal([]any{configuration, sealed})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12]), err
}
