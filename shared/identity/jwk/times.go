package jwk

import (
	"bytes"
	"encoding/json"
)

// times are the claims that RFC 7519 defines as NumericDate, and auth_time of OpenID
// Connect.
var times = [...]string{"exp", "nbf", "iat", "auth_time"}

// BadTime returns the name of a claim that must be a number and is not, or "". Libraries
// read numbers in quotation marks as well, which other readers of the same token ignore.
func BadTime(payload []byte) string {
	var claims map[string]json.RawMessage
	if json.Unmarshal(payload, &claims) != nil {
		return "exp"
	}
	for _, name := range times {
		if raw := bytes.TrimSpace(claims[name]); len(raw) > 0 && raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
			return name
		}
	}
	return ""
}
