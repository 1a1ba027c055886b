package hint

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	fields := []string{"name", "description", "usage_limits", "rate_limits", "ai_model", "ai_org_model", "isDefault", "id"}
	for name, want := range map[string]string{
		"usage_limit": "usage_limits", "rate_limit": "rate_limits", "usageLimits": "usage_limits", "ai_modle": "ai_model", "is_default": "isDefault", "nmae": "name",
		"Description": "description", "descripton": "description", "ids": "id",
		"colour": "", "": "", "x": "", strings.Repeat("name", 100): "",
	} {
		if got, ok := Nearest(name, fields); got != want || ok != (want != "") {
			t.Errorf("%.40s: %q, %t, want %q", name, got, ok, want)
		}
	}
	if got := DidYouMean("usage_limit", fields); got != "; did you mean usage_limits?" {
		t.Error(got)
	}
	if got := DidYouMean("colour", fields); got != "" {
		t.Error(got)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	patterns := []string{"/configs", "/configs/{slug}", "/configs/{slug}/versions", "/api-keys", "/api-keys/{id}", "/admin/workspaces", "/chat/completions", "/models"}
	for path, want := range map[string]string{
		"/config": "/configs", "/api_keys": "/api-keys", "/apikeys/x": "/api-keys/{id}", "/configs/a/version": "/configs/{slug}/versions", "/admin/workspace": "/admin/workspaces",
		"/chat/completion": "/chat/completions", "/config/a/b/c/d": "/configs", "/configs/a/b/c/d": "", "/configs": "", "/weather": "", "/": "", "": "", "//": "",
	} {
		if got, ok := Path(path, patterns); got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
