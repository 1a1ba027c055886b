package main

import (
	"net/http"
	"testing"

	"gateway/shared/host"
)

// Pages of listed origins may call the data plane, and the administration stays closed to
// them. In a row: the variable is the process's.
func TestListedPagesCallTheDataPlane(t *testing.T) {
	const page = "https://app.example.com"
	t.Setenv("GATEWAY_ALLOWED_ORIGINS", page)
	r := start(t)
	preflight := func(path, origin string) reply {
		return r.call("OPTIONS", path, "", "X-Gateway-Api-Key", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-gateway-api-key,content-type")
	}
	got := preflight("/chat/completions", page)
	if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") != page || got.header.Get("Access-Control-Allow-Headers") == "" {
		t.Errorf("preflight: %d %v", got.status, got.header)
	}
	for path, origin := range map[string]string{"/chat/completions": "https://other.example.com", "/api-keys": page, "/configs": page} {
		if got := preflight(path, origin); got.status == http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s of %s: %d %v", path, origin, got.status, got.header)
		}
	}
	call := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o", "hi", ""), "Origin", page)
	if call.status != http.StatusOK || call.header.Get("Access-Control-Allow-Origin") != page || call.header.Get("Access-Control-Expose-Headers") != "*" {
		t.Errorf("call: %d %v", call.status, call.header)
	}
	t.Setenv("GATEWAY_ALLOWED_ORIGINS", "app.example.com")
	if _, err := host.DefaultOptions().FromEnvironment(); err == nil {
		t.Error("a wrong list is accepted")
	}
}
