package reference

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// answering is a manager that answers everything in one way.
type answering struct {
	status int
	body   []byte
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

// trusted authenticates without any call.
type trusted struct{}

func (trusted) SignAWS(context.Context, map[string]string, *http.Request, []byte, string, string) error {
	return nil
}

func (trusted) AzureToken(context.Context, map[string]string, string) (string, error) {
	return fuzzedProof, nil
}

const fuzzedProof = "proof-that-nobody-may-read"

// FuzzAnswers feeds arbitrary responses of a manager to its reader. A value is a non-empty
// string; an error is short and reveals neither the response nor the caller.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"SecretString":"the-secret-of-the-test"}`, `{"SecretBinary":"AAEC"}`, `{"__type":"com.amazonaws#ThrottlingException"}`,
		`{"value":"the-secret-of-the-test"}`, `{"error":{"code":"SecretNotFound"}}`,
		`{"data":{"data":{"key":"the-secret-of-the-test"},"metadata":{"version":1}}}`, `{"data":{"key":"x"}}`, `{"auth":{"client_token":"t","lease_duration":60,"renewable":true}}`,
		`{"errors":["permission denied"]}`, `{"data":null}`, `[]`, `"`, ``, `{"value":"{\"a\":{\"b\":1}}"}`, "{\"value\":\"\xff\"}",
	} {
		for _, status := range []uint16{200, 403, 404, 503} {
			f.Add(status, []byte(body), "key")
		}
	}
	f.Fuzz(func(t *testing.T, status uint16, body []byte, key string) {
		r := New(answering{100 + int(status)%500, body}, trusted{}, time.Now)
		for manager, auth := range map[string]map[string]string{
			AWS:     {awsRegion: "eu-west-1"},
			Azure:   {azureAuthMode: entra, azureVaultURL: "https://team.vault.azure.net"},
			Vault:   {vaultAuthType: token, vaultAddr: "https://vault.example.com", vaultTokenName: fuzzedProof},
			"login": {vaultAuthType: "approle", vaultAddr: "https://vault.example.com", "vault_role_id": "role", "vault_secret_id": fuzzedProof},
		} {
			s := &Source{ID: "id", Name: "name", Reference: &Reference{ManagerType: manager, Auth: auth, SecretPath: "secret/data/team"}, Open: func(context.Context) (map[string][]byte, error) { return nil, nil }}
			if manager == "login" {
				s.ManagerType = Vault
			}
			v, err := r.fetch(t.Context(), s)
			if err != nil {
				message := s.Named(err).Error()
				if len(message) > 500 || strings.Contains(message, fuzzedProof) || strings.Contains(message, "the-secret-of-the-test") {
					t.Errorf("%s: the refusal says %.600q", manager, message)
				}
				continue
			}
			for _, format := range []string{"", FormatString, FormatJSON} {
				for _, name := range append(v.Members(), "", key) {
					if text, err := v.Read(name, format); err == nil && (text == "" || !utf8.ValidString(text)) {
						t.Errorf("%s: %q read as %q gives %q", manager, name, format, text)
					}
				}
			}
		}
	})
}
