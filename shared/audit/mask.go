package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/fault"
)

// Limits of a record.
const (
	maxBody   = 64 << 10 // of the masked body
	maxShort  = 8 << 10  // of masked headers and of the masked query
	maxDepth  = 64
	cutMarker = "..."
)

// Mask shows the first two and the last two characters of a secret.
func Mask(s string) string {
	r := []rune(s)
	if len(r) < 8 {
		return "****"
	}
	return string(r[:2]) + "****" + string(r[len(r)-2:])
}

// secretWords mark a name as that of a secret if it contains one of them, ignoring case,
// '_' and '-'.
var secretWords = []string{
	"secret", "password", "passwd", "passphrase", "token", "authorization", "credential",
	"apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "sharedkey", "cookie",
	"jwt", "bearer", "signature", "serviceaccountjson", "clientassertion",
}

// secretTrees are names below which every value is masked.
var secretTrees = map[string]bool{
	"authconfig": true, "customheaders": true, "credentials": true, "jwks": true, "requestheaders": true,
	"headers": true, "passthroughheaders": true, "passthroughheader": true,
}

// plainNames look like names of secrets and are not.
var plainNames = map[string]bool{
	"maxtokens": true, "maxcompletiontokens": true, "maxoutputtokens": true, "inputtokens": true, "outputtokens": true,
	"totaltokens": true, "requesttoken": true, "responsetoken": true, "tokentype": true, "secretreferenceid": true,
	"secretpath": true, "tokenendpointauthmethod": true, "valuekey": true, "publickey": true, "requiredmetadatakeypairs": true,
}

var plainLetters = strings.NewReplacer("_", "", "-", "", ".", "")

// SecretName reports whether a field, header or parameter of that name is taken
// to hold a secret.
func SecretName(name string) bool { return secretName(name) || secretTree(name) }

// secretName reports whether a field, header or parameter holds a secret.
func secretName(name string) bool {
	n := plainLetters.Replace(strings.ToLower(name))
	if plainNames[n] {
		return false
	}
	if n == "key" || n == "keys" || strings.HasSuffix(n, "key") {
		return true
	}
	for _, w := range secretWords {
		if strings.Contains(n, w) {
			return true
		}
	}
	return false
}

func secretTree(name string) bool {
	return secretTrees[plainLetters.Replace(strings.ToLower(name))]
}

// secretValue finds secrets in places where no name marks them: keys with a known prefix,
// credentials of the gateway, JWTs, and the user part of an address.
var secretValue = regexp.MustCompile(`(?:\b(?:(?:gs|gk|ga|gr|scim|dep)-|ek_|whsec_)[A-Za-z0-9_-]{26,})|(?:\b(?:sk|pk|gw|rk|ghp|gho|xox[abp]|AIza|AKIA|ASIA|hf|gsk|r8)[-_]?[A-Za-z0-9_-]{16,})|(?:\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)|(?:(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,})|(?:://[^/\s@"?#]+@)|(?:-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*)`)

func maskText(s string) string {
	if strings.Contains(s, "://") {
		s = maskURLs(s)
	}
	return secretValue.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "://") {
			return "://****@"
		}
		return Mask(m)
	})
}

// MaskBody returns the form of a request body in a record: JSON with its secrets masked at
// every level. Of a body that is not JSON, only the size is recorded.
func MaskBody(body []byte) string {
	if len(bytes.TrimSpace(body)) == 0 {
		return "{}"
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() || !utf8.Valid(body) {
		return fmt.Sprintf(`{"_unreadable":true,"_bytes":%d}`, len(body))
	}
	return encode(maskValue(v, false, 0), maxBody)
}

func maskValue(v any, hide bool, depth int) any {
	if depth > maxDepth {
		return cutMarker
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[maskText(k)] = maskValue(e, hide || secretTree(k) || secretName(k), depth+1)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = maskValue(e, hide, depth+1)
		}
		return out
	case string:
		if hide {
			return Mask(v)
		}
		return maskInner(v, depth)
	case json.Number:
		if hide {
			return "****"
		}
	}
	return v // true, false and null reveal nothing
}

// maskInner masks a string. A string that contains a JSON object or list, such as a config sent
// as text, is masked inside. Of a string that only begins like one, only the size is recorded.
func maskInner(s string, depth int) any {
	text := strings.TrimSpace(s)
	if text == "" || text[0] != '{' && text[0] != '[' {
		return maskText(s)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return fmt.Sprintf("(%d bytes that are not JSON)", len(s))
	}
	return encode(maskValue(v, false, depth+1), maxBody)
}

// MaskHeaders returns the form of a request's headers in a record, with names in lower case.
func MaskHeaders(h http.Header) string {
	out := make(map[string]any, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = maskAll(name, values)
	}
	return encode(out, maxShort)
}

// MaskQuery returns the form of a request's query in a record.
func MaskQuery(q url.Values) string {
	out := make(map[string]any, len(q))
	for name, values := range q {
		out[maskText(name)] = maskAll(name, values)
	}
	return encode(out, maxShort)
}

func maskAll(name string, values []string) string {
	joined := strings.Join(values, ", ")
	if secretName(name) {
		return Mask(joined)
	}
	return maskText(joined)
}

// encode is v as JSON of at most limit bytes; a larger one is replaced by its
// beginning, as text in a JSON object, so that the result stays JSON.
func encode(v any, limit int) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return `{"_unreadable":true}`
	}
	out := strings.TrimSuffix(b.String(), "\n")
	if len(out) <= limit {
		return out
	}
	head := strings.ToValidUTF8(out[:limit/2], "")
	short, _ := json.Marshal(map[string]any{"_truncated": true, "_bytes": len(out), "_start": head})
	return string(short)
}

// Texts masks all texts below the name of a secret, for families that seal the entire value and
// show the masked one.
type Texts struct {
	Found bool           // there was a text
	Bad   []fault.Detail // texts that are masked already: a caller sent back what it had read
}

// Mask masks every text below v, in place where it can; path is where v is.
func (t *Texts) Mask(v any, path string) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return v
		}
		t.Found = true
		if Masked(v) {
			t.Bad = append(t.Bad, fault.Detail{Field: path, Message: "is a masked value, as returned by reads; send the complete value"})
		}
		return Mask(v)
	case map[string]any:
		for k, e := range v {
			v[k] = t.Mask(e, path+"."+k)
		}
	case []any:
		for i, e := range v {
			v[i] = t.Mask(e, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	return v
}

// Masked reports whether a text is what Mask makes.
func Masked(s string) bool {
	r := []rune(s)
	return s == "****" || len(r) == 8 && string(r[2:6]) == "****"
}

// parameter finds the parameters of URLs within a text.
var parameter = regexp.MustCompile(`([?&;#][^=&;#?/\s"]+=)([^&;#\s"]*)`)

// token finds long segments in the paths of URLs within a text.
var token = regexp.MustCompile(`/[A-Za-z0-9_-]{20,}`)

// maskURLs masks the credentials in the URLs of a text: parameters with names of secrets, and
// segments of the path that look random, as those of webhooks do.
func maskURLs(s string) string {
	s = parameter.ReplaceAllStringFunc(s, func(m string) string {
		name, value, _ := strings.Cut(m[1:], "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if value == "" || !secretName(name) && !strings.EqualFold(name, "sig") {
			return m
		}
		return m[:len(m)-len(value)] + Mask(value)
	})
	return token.ReplaceAllStringFunc(s, func(m string) string {
		if !random(m[1:]) {
			return m
		}
		return "/" + Mask(m[1:])
	})
}

// MaskPath masks the segments of a request's escaped path that look like credentials.
// Records of audit, usage and traces keep paths only in this form.
func MaskPath(escaped string) string {
	segments := strings.Split(escaped, "/")
	for i, s := range segments {
		if masked := maskSegment(s); masked != s {
			segments[i] = url.PathEscape(masked)
		}
	}
	return strings.Join(segments, "/")
}

// secretSegment finds what secretValue does, even directly after other letters.
var secretSegment = regexp.MustCompile(strings.ReplaceAll(secretValue.String(), `\b`, ``))

// leastCredential is the length of the shortest text that counts as a credential.
const leastCredential = 18

// maskSegment masks credentials in a segment of a path, escaped or not, or in an id. Slugs
// that begin like a key stay as they are.
func maskSegment(s string) string {
	if len(s) < leastCredential {
		return s
	}
	plain := s
	for range 4 { // it may be escaped more than once
		next, err := url.PathUnescape(plain)
		if err != nil || next == plain {
			break
		}
		plain = next
	}
	masked := secretSegment.ReplaceAllStringFunc(plain, func(m string) string {
		if !random(m) {
			return m
		}
		return Mask(m)
	})
	if masked == plain {
		return s
	}
	return masked
}

// random reports whether a text looks generated: it mixes upper case with lower case and
// digits, or has a long run of letters and digits among which are some of both.
func random(s string) bool {
	var upper, lower, digit bool
	run, mixed := 0, [2]bool{}
	for _, r := range s {
		upper, lower, digit = upper || unicode.IsUpper(r), lower || unicode.IsLower(r), digit || unicode.IsDigit(r)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			run, mixed = 0, [2]bool{}
			continue
		}
		run++
		mixed[0], mixed[1] = mixed[0] || unicode.IsLetter(r), mixed[1] || unicode.IsDigit(r)
		if run >= leastCredential && mixed[0] && mixed[1] && !hexadecimal(s) {
			return true
		}
	}
	return upper && lower && (digit || len(s) >= 40)
}

// hexadecimal reports whether a text may be the id or the digest of something.
func hexadecimal(s string) bool {
	return strings.Trim(s, "0123456789abcdef-") == ""
}
