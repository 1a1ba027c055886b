package audit

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// credentials are one of each form that the gateway issues, and some of others.
var credentials = []string{
	"gw-3q2-7wABCdefGhiJklMnoPqrStuVwxYz0123456789_", "gs-3q2-7wABCdefGhiJklMnoPqrStuVwxYz0123456789_", "ga-3q2-7wABCdefGhiJklMnoPqrStuVwxYz0123456789_",
	"gr-3q2-7wABCdefGhiJklMnoPqrStuVwxYz0123456789_", "gk-3q2-7wABCdefGhiJklMnoPqrStuVwxYz0123456789_", "ek_3q2_7wABCdefGhiJklMnoPqrStuVwxYz0123456789_", "scim-3q2-7wABCdefGhiJklMnoPqrStuVwxYz0123456789_", "dep-abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrst",
	"sk-proj-Abc123Def456Ghi789Jkl", "AKIAIOSFODNN7EXAMPLE", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhYmNkZWYifQ.c2lnbmF0dXJl",
}

func TestPathsAndIDsAreMasked(t *testing.T) {
	t.Parallel()
	for _, raw := range credentials {
		escaped := strings.Replace(raw, "-", "%2D", 1)
		for _, path := range []string{"/v1/api-keys/" + raw, "/v1/configs/" + raw + "/versions", "/v1/configs/" + escaped, "/v1/configs/Bearer%20" + raw, "/v1/configs/x" + url.PathEscape("/"+raw), "/v1/configs/x" + raw, "/v1/configs/" + url.PathEscape(escaped), "/v1/configs/" + url.PathEscape(url.PathEscape("Bearer "+raw))} {
			e := Entry{URI: path, ResourceID: raw}
			e.complete(time.Unix(0, 0), "o")
			plain, err := e.URI, error(nil)
			for range 3 {
				if plain, err = url.PathUnescape(plain); err != nil {
					break
				}
			}
			if err != nil || strings.Contains(plain, raw) || e.URI == path {
				t.Errorf("%s is kept as %s", path, e.URI)
			}
			if e.ResourceID == raw || len(e.ResourceID) > 10 {
				t.Errorf("the id %s is kept as %s", raw, e.ResourceID)
			}
		}
	}
}

func TestPathsWithoutCredentialsStayReadable(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/v1/api-keys/0198c0de-1234-7abc-9def-0123456789ab", "/v1/integrations/gw-production-europe-west-secondary", "/v1/configs/pc-routing-a1b2c3", "/v1/users/mail-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"/v1/scim/Users/scim-synchronization-user-of-the-directory", "/v1/files/file-7e2746aa11bb22cc", "/v1/model-configs/pricing/openai/gpt-4o-mini-2024-07-18", "", "/", "/v1/a%2Fb",
	} {
		if got := MaskPath(path); got != path {
			t.Errorf("%s is kept as %s", path, got)
		}
	}
}

func TestCredentialsInURLsOfBodiesAreMasked(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://user:" + canary + "@host/path", "https://" + canary + "@host/path", "https://host/path?api_key=" + canary, "https://host/?a=b&access_token=" + canary + "&c=d",
		"https://host/path#token=" + canary, "https://account.blob.core.windows.net/x?sv=1&sig=" + canary, "https://host/?X-Amz-Signature=" + canary, "see https://host/?%61pi_key=" + canary,
		"https://hooks.example.com/services/T000/B000/CANARYx7f3a9bVALUEqRst24",
	} {
		got := MaskBody([]byte(`{"url":"` + address + `"}`))
		if strings.Contains(got, canary) || strings.Contains(got, "CANARYx7f3a9b") {
			t.Errorf("%s is kept as %s", address, got)
		}
	}
	for _, address := range []string{"https://host/path?x=1", "https://host/v1?email=a@b.example", "https://host/0198c0de-1234-7abc-9def-0123456789ab", "https://host/models/gpt-4o-mini-2024-07-18-preview"} {
		if got := MaskBody([]byte(`{"url":"` + address + `"}`)); got != `{"url":"`+address+`"}` {
			t.Errorf("%s is kept as %s", address, got)
		}
	}
}
