package provider

import (
	"encoding/json"
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
