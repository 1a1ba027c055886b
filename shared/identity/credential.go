package identity

import "strings"

// prefixes are the prefixes of credentials that the gateway issues, which have secretLength
// random characters: keys, sessions, SCIM tokens and tokens of MCP clients.
var prefixes = [...]string{"gw-", "gs-", "gk-", "scim-", "ga-", "gr-"}

// secretLength is the length of 32 random bytes in base64url.
const secretLength = 43

// HoldsCredential reports whether a header value contains a credential that the gateway issued,
// with any scheme. Such values are never forwarded.
func HoldsCredential(value string) bool {
	for i := 0; i+secretLength < len(value); i++ {
		if value[i] != 'g' && value[i] != 's' || i > 0 && tokenByte(value[i-1]) {
			continue
		}
		for _, p := range prefixes {
			rest, ok := strings.CutPrefix(value[i:], p)
			if ok && len(rest) >= secretLength && tokenBytes(rest[:secretLength]) {
				return true
			}
		}
	}
	return false
}

func tokenBytes(s string) bool {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return false
		}
	}
	return true
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
