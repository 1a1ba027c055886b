package target

import (
	"net/http"
	"strings"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/wire/mask"
)

func TestWhatIsSecretInACredential(t *testing.T) {
	t.Parallel()
	for _, p := range provider.All() {
		cred := provider.Credential{Key: "the-key-itself", Fields: map[string]string{}, CustomHeaders: map[string]string{"X-A": "Basic dXNlcjpwYXNz"}}
		want := []string{"the-key-itself", "Basic dXNlcjpwYXNz", "dXNlcjpwYXNz", "Bearer other-header-value", "other-header-value"}
		for _, f := range p.Fields {
			cred.Fields[f.Name] = "value-of-" + f.Name
			if f.Secret {
				want = append(want, "value-of-"+f.Name)
			}
			if f.Name == "vertex_service_account_json" {
				cred.Fields[f.Name] = `{"private_key":"-----BEGIN KEY","private_key_id":"0123456789ab"}`
				want = append(want[:len(want)-1], cred.Fields[f.Name], "-----BEGIN KEY", "0123456789ab")
			}
		}
		target := provider.Target{Provider: p, Credential: cred, CustomHeaders: map[string]string{"X-B": "Bearer other-header-value"}}
		got := "\x00" + strings.Join(target.Secrets(nil, true), "\x00") + "\x00"
		for _, w := range want {
			if !strings.Contains(got, "\x00"+w+"\x00") {
				t.Errorf("%s: %q is no secret", p.ID, w)
			}
		}
	}
}

// Tokens that were made for the request are secrets too.
func TestDerivedTokensAreHidden(t *testing.T) {
	t.Parallel()
	c := SecretMask{Target: &Target{}}
	c.Target.Choice.Target.Provider, _ = provider.ByID("bedrock")
	c.Sent = http.Header{
		"Authorization":        {"AWS4-HMAC-SHA256 Credential=AKIA/2026, SignedHeaders=host, Signature=00112233445566778899"},
		"X-Amz-Security-Token": {"session-token-0123456789"}, "Accept": {"application/json"},
	}
	text := []byte("token session-token-0123456789 signature 00112233445566778899 type application/json")
	mask.Bytes(text, c.Secrets())
	if string(text) != "token ************************ signature ******************** type application/json" {
		t.Errorf("%s", text)
	}
}
