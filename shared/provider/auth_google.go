package provider

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gateway/shared/fault"
)

// The values of vertex_auth_type.
const (
	googleBasic          = "basic"
	googleServiceAccount = "serviceAccount"
	googleWorkload       = "workload"
)

const (
	googleTokenURL = "https://oauth2.googleapis.com/token"
	googleScope    = "https://www.googleapis.com/auth/cloud-platform"
	// assertionLife is how long a signed request for a token is valid; Google allows an hour
	// at most.
	assertionLife = time.Hour
	accountField  = "vertex_service_account_json"
)

// authorizeGoogle sends an access token: the key, if it is one, or the token that Google
// gives for a service account.
func authorizeGoogle(t *Target, ctx context.Context, req *http.Request) error {
	req.Header.Del("X-Goog-Api-Key") // if the caller sent one, it would count beside the token
	switch mode := googleMode(t); mode {
	case googleBasic:
		if t.Credential.Key == "" {
			return fault.New(fault.InvalidRequest, "api_key", "vertex-ai needs an OAuth access token as api_key, or a service account in vertex_service_account_json")
		}
		return keyHeader(t, req.Header, "Authorization", "Bearer ")
	case googleServiceAccount:
		token, err := serviceAccountToken(t, ctx)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	case googleWorkload:
		token, err := googleWorkloadToken(t, ctx)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	default:
		return fault.Newf(fault.InvalidRequest, "vertex_auth_type", "vertex_auth_type must be %s, %s or %s", googleBasic, googleServiceAccount, googleWorkload)
	}
}

// googleMode is the target's vertex_auth_type. If a service account is given, it is used.
func googleMode(t *Target) string {
	if mode := t.Field("vertex_auth_type"); mode != "" {
		return mode
	}
	if t.Field(accountField) != "" {
		return googleServiceAccount
	}
	return googleBasic
}

// serviceAccount is a key file of Google Cloud.
type serviceAccount struct {
	Type        string `json:"type"`
	ProjectID   string `json:"project_id"`
	KeyID       string `json:"private_key_id"`
	PrivateKey  string `json:"private_key"`
	ClientEmail string `json:"client_email"`
	TokenURI    string `json:"token_uri"`
}

// parseServiceAccount reads a key file. Its errors reveal nothing of the key.
func parseServiceAccount(text string) (*serviceAccount, *rsa.PrivateKey, error) {
	var a serviceAccount
	if json.Unmarshal([]byte(text), &a) != nil {
		return nil, nil, fault.Invalid(accountField, "%s must be the JSON key file of a service account", accountField)
	}
	if a.Type == "external_account" {
		return nil, nil, fault.Invalid(accountField+".type", "%s.type must be service_account; an external_account goes with vertex_auth_type %s", accountField, googleWorkload)
	}
	for _, m := range []struct{ name, value string }{{"client_email", a.ClientEmail}, {"private_key", a.PrivateKey}} {
		if m.value == "" {
			return nil, nil, fault.Invalid(accountField+"."+m.name, "%s.%s is required: send the complete JSON key file of a service account", accountField, m.name)
		}
	}
	if a.Type != "" && a.Type != "service_account" {
		return nil, nil, fault.Invalid(accountField+".type", "%s.type must be service_account", accountField)
	}
	key, ok := rsaKey(a.PrivateKey)
	if !ok {
		return nil, nil, fault.Invalid(accountField+".private_key", "%s.private_key must be an RSA key of at least 2048 bits in PEM form", accountField)
	}
	if a.TokenURI == "" {
		a.TokenURI = googleTokenURL
	}
	return &a, key, nil
}

func rsaKey(text string) (*rsa.PrivateKey, bool) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, false
	}
	var key *rsa.PrivateKey
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		key, _ = parsed.(*rsa.PrivateKey)
	} else if key, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		return nil, false
	}
	return key, key != nil && key.N.BitLen() >= 2048
}

// serviceAccountToken exchanges a signed assertion for an access token (RFC 7523), which
// is cached until shortly before it expires. The key file contains the token endpoint;
// the egress policy decides which endpoints are allowed.
func serviceAccountToken(t *Target, ctx context.Context) (string, error) {
	signer, err := t.signer()
	if err != nil {
		return "", err
	}
	text := t.Field(accountField)
	if text == "" {
		return "", fault.Invalid(accountField, "%s is required by vertex_auth_type serviceAccount", accountField)
	}
	return signer.Get(ctx, TokenKey("google", text), func(ctx context.Context, rt http.RoundTripper) (string, time.Time, error) {
		account, key, err := parseServiceAccount(text)
		if err != nil {
			return "", time.Time{}, err
		}
		now := signer.Now()
		assertion, err := account.assertion(key, now)
		if err != nil {
			return "", time.Time{}, err
		}
		u, err := url.Parse(account.TokenURI)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			return "", time.Time{}, fault.Invalid(accountField+".token_uri", "%s.token_uri must be an https URL", accountField)
		}
		form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
		token, life, err := oauthToken(ctx, rt, account.TokenURI, form, "Google", accountField)
		return token, now.Add(life), err
	})
}

// assertion returns the JWT for a token request, signed with RS256.
func (a *serviceAccount) assertion(key *rsa.PrivateKey, now time.Time) (string, error) {
	head, _ := json.Marshal(struct {
		Alg string `json:"alg"`
		Typ string `json:"typ"`
		Kid string `json:"kid,omitempty"`
	}{"RS256", "JWT", a.KeyID})
	claims := `{"iss":` + quoted(a.ClientEmail) + `,"sub":` + quoted(a.ClientEmail) + `,"aud":` + quoted(a.TokenURI) + `,"scope":` + quoted(googleScope) +
		`,"iat":` + strconv.FormatInt(now.Unix(), 10) + `,"exp":` + strconv.FormatInt(now.Add(assertionLife).Unix(), 10) + `}`
	b64 := base64.RawURLEncoding
	signed := b64.EncodeToString(head) + "." + b64.EncodeToString([]byte(claims))
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fault.Invalid(accountField+".private_key", "%s.private_key cannot sign", accountField)
	}
	return signed + "." + b64.EncodeToString(signature), nil
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
