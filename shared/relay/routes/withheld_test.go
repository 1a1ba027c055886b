package routes

import (
	"strings"
	"testing"

	"gateway/shared/provider"
)

func TestWithheldTableIsSound(t *testing.T) {
	t.Parallel()
	rows, err := parseWithheld(withheldText)
	if err != nil || len(rows) < 20 {
		t.Fatal(len(rows), err)
	}
	for _, h := range rows {
		path := strings.NewReplacer("**", "a/b", "*", "a").Replace(h.Path)
		of := "openai"
		for _, of = range h.Providers {
			if _, ok := provider.ByID(of); !ok {
				t.Errorf("%s: there is no provider %q", h.Path, of)
			}
		}
		if WithheldReason(path, of) == "" {
			t.Errorf("%s: its own row does not decide", path)
		}
	}
	for _, bad := range []string{"/a *", "a * why", "/A * why", "/a * x\n/a * y"} {
		if _, err := parseWithheld(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestSpellingsOfWithheldPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/organization/users", "/v1/organization", "//organization", "/ORGANIZATION/x", "/%6frganization", "/x/../organization", "/openai/v1/organization/costs",
		"/realtime/client_secrets", "/realtime/client_secrets/", "/v1/realtime%2Fclient_secrets", "/realtime;a/calls", "/live/sessions/s1/fork", "/agents",
	} {
		if WithheldReason(path, "openai") == "" {
			t.Errorf("%s is passed on", path)
		}
	}
	for _, path := range []string{"", "/", "/v1", "/realtime", "/realtime/other", "/files", "/organizations", "/x/organization"} {
		if why := WithheldReason(path, "openai"); why != "" {
			t.Errorf("%s is withheld: %s", path, why)
		}
	}
	if WithheldReason("/agents/a1", "mistral-ai") != "" || WithheldReason("/v1beta/auth_tokens", "google") == "" {
		t.Error("a row does not go by its providers")
	}
}
