package provider

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Shorter values do not count as secrets: hiding them would damage other texts.
const (
	leastSecret = 6 // bytes of a key or of a secret field
	leastHeader = 8 // of the value of a custom header, which may be a label
)

// Secrets appends the secret parts of the target's credential: the key, the secret fields
// and the values of custom headers. If parts is set, it also appends parts of secrets:
// the secret fields of a key file, and a token without its scheme.
func (t *Target) Secrets(dst []string, parts bool) []string {
	if len(t.Credential.Key) >= leastSecret {
		dst = append(dst, t.Credential.Key)
	}
	if t.Provider != nil {
		for i := range t.Provider.Fields {
			f := &t.Provider.Fields[i]
			if v := t.Credential.Fields[f.Name]; f.Secret && len(v) >= leastSecret {
				if dst = append(dst, v); parts && f.Form == JSONObject {
					dst = membersOf(dst, v)
				}
			}
		}
	}
	for _, custom := range [...]map[string]string{t.Credential.CustomHeaders, t.CustomHeaders} {
		for _, v := range custom {
			if len(v) >= leastHeader {
				dst = append(dst, v)
			}
			if parts {
				dst = TokenOf(dst, v)
			}
		}
	}
	return dst
}

// HeaderSecrets appends the secret values of request headers: those sent as credentials
// to a registered server or agent. Headers named in client came from the caller and count
// only if their name is that of a credential. Headers named in secret came from a secret
// manager and always count; AnyHeader matches all of them.
func HeaderSecrets(dst []string, sent http.Header, client, secret []string) []string {
	for name, values := range sent {
		known := slices.Contains(secret, name) || slices.Contains(secret, AnyHeader)
		for _, v := range values {
			switch {
			case len(v) < leastHeader || publicHeader(name):
				continue
			case slices.Contains(client, name):
				if !credentialName(name) {
					continue
				}
			case !known && !isCredential(name, v):
				continue
			}
			dst = TokenOf(append(dst, v), v)
			if scheme, rest, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "basic") {
				plain, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(rest)) // another form holds no password
				if _, password, ok := strings.Cut(string(plain), ":"); ok && len(password) >= leastSecret {
					dst = append(dst, password)
				}
			}
		}
	}
	return dst
}

// AnyHeader matches the names of all headers.
const AnyHeader = "*"

// MappedHeaders returns the names of the headers that secret mappings fill.
func MappedHeaders(mappings []SecretMapping) (names []string) {
	for _, m := range mappings {
		name := m.TargetField[strings.LastIndexByte(m.TargetField, '.')+1:]
		if strings.HasSuffix(name, "headers") || strings.HasSuffix(name, "header") { // the complete object
			name = AnyHeader
		}
		names = append(names, http.CanonicalHeaderKey(name))
	}
	return names
}

// isCredential reports whether the value of a configured header is a credential: the
// header or the value is named like one, or it has a scheme, or it does not consist of
// words and small numbers. Ordinary values, such as an environment or a region, occur in
// texts that must not be altered.
func isCredential(name, value string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(value), " ")
	return credentialName(name) || credentialName(value) || slices.Contains([]string{"bearer", "basic", "token", "apikey", "digest"}, scheme) || !isOrdinary(value)
}

// Longer parts of a value are no words and no small numbers.
const (
	longestWord   = 16
	longestNumber = 8
)

// isOrdinary reports whether a value consists of words and small numbers with signs between
// them: production, eu-west-1, text/plain, 2026-11-28, https://example.com/team.
func isOrdinary(value string) bool {
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" -_./:,;@()?=&", r) }) {
		letters, digits, mixed := 0, 0, false
		for i := range len(part) {
			switch c := part[i]; {
			case c >= '0' && c <= '9':
				digits++
			case c >= 'a' && c <= 'z':
				letters++
			case c >= 'A' && c <= 'Z':
				mixed = mixed || letters > 0 && (part[i-1] < 'A' || part[i-1] > 'Z')
				letters++
			default:
				return false
			}
		}
		short := letters+digits <= 4 // v2, 4o
		if letters > longestWord || digits > longestNumber || !short && (mixed || letters > 0 && digits > 0) {
			return false
		}
	}
	return true
}

// publicHeader reports whether a header describes a request and never holds a credential.
func publicHeader(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "Content-Length", "Traceparent", "Tracestate", "User-Agent":
		return true
	}
	return strings.HasPrefix(name, "Mcp-") || strings.HasPrefix(name, "A2a-")
}

// credentialName reports whether a header is, by its name, a credential.
func credentialName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range [...]string{"auth", "token", "secret", "key", "passw", "cookie", "credential", "session", "signature", "jwt", "assertion"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// TokenOf appends the secret part of a header's value: the text after the scheme, and a
// signature at its end.
func TokenOf(dst []string, header string) []string {
	_, token, _ := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); len(token) >= leastHeader && !strings.Contains(token, " ") {
		dst = append(dst, token)
	}
	if i := strings.LastIndex(strings.ToLower(header), "signature="); i >= 0 {
		if s := strings.Trim(header[i+len("signature="):], `"`); len(s) >= leastHeader {
			dst = append(dst, s)
		}
	}
	return dst
}

// membersOf appends the secret fields of a key file.
func membersOf(dst []string, file string) []string {
	var m struct {
		Key string `json:"private_key"`
		ID  string `json:"private_key_id"`
	}
	if json.Unmarshal([]byte(file), &m) != nil {
		return dst
	}
	for _, v := range []string{m.Key, m.ID} {
		if len(v) >= leastHeader {
			dst = append(dst, v)
		}
	}
	return dst
}
