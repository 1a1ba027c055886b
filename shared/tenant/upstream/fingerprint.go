package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Fingerprint changes with how a server is called: with its configuration and its sealed
// secrets. The rest of the record is not in configuration.
func Fingerprint(configuration any, sealed []byte) (string, error) {
	raw, err := json.Marshal([]any{configuration, sealed})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12]), err
}
