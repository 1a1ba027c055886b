package identity

import (
	"strings"
	"testing"

	"gateway/shared/audit"
)

// A credential of every form that the gateway issues is masked where no name marks it.
func TestAuditMasksWhatTheGatewayIssues(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("aB3-_", 9)[:secretLength]
	for _, p := range prefixes {
		c := p + secret
		if got := audit.MaskPath("/v1/configs/" + c); strings.Contains(got, secret) {
			t.Errorf("a path is recorded as %s", got)
		}
		if got := audit.MaskBody([]byte(`{"description":"see ` + c + `"}`)); strings.Contains(got, secret) {
			t.Errorf("a body is recorded as %s", got)
		}
	}
}

func TestHoldsCredentialFindsWhatTheGatewayIssues(t *testing.T) {
	t.Parallel()
	key, _ := NewSecret()
	secret := strings.Repeat("aB3-_", 9)[:secretLength]
	found := []string{key}
	for _, p := range prefixes {
		found = append(found, p+secret, p+secret+secret) // some have an id before the secret
	}
	for _, c := range found {
		for _, v := range []string{c, "Bearer " + c, "bearer\t" + c, `token="` + c + `"`, "a=b; x=" + c + "; y=z", "Basic " + c, " " + c + " "} {
			if !HoldsCredential(v) {
				t.Errorf("%q is forwarded", v)
			}
		}
	}
	for _, v := range []string{"", "gs-", "gw-short", "Bearer sk-" + secret, "Bearer eyJ" + secret + "." + secret, "tags-" + secret, "gs_" + secret, "GS-" + secret, "gs-" + strings.Repeat("a b", 20)} {
		if HoldsCredential(v) {
			t.Errorf("%q is held back", v)
		}
	}
}
