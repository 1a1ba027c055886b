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

// Secrets appends the parts of the target's credential that nobody may read: the key, the
// secret fields and the values of custom headers. If parts is set, it also appends parts of
// secrets: the secret members of a key file, and a token without its scheme.
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

// HeaderSecrets appends the values of request headers that must not be shown to anybody:
// those that a registered server or agent was sent as credentials. Headers that are named
// in client came from the caller and count only if their name is that of a credential.
func HeaderSecrets(dst []string, sent http.Header, client []string) []string {
	for name, values := range sent {
		if publicHeader(name) || slices.Contains(client, name) && !credentialName(name) {
			continue
		}
		for _, v := range values {
			if len(v) < leastHeader {
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

// membersOf appends the secret members of a key file.
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
