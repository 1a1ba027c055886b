package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/signin/browser"
)

func TestKeySessionsAreRefusedOnTheDataPlane(t *testing.T) {
	t.Parallel()
	r := start(t)
	begun := r.without("POST", "/session", `{"api_key":"`+workspaceKey+`"}`)
	r.wantStatus("sign in", begun, 200, "csrf_token")
	cookies := (&http.Response{Header: begun.header}).Cookies()
	csrf, token := begun.json(t)["csrf_token"].(string), ""
	for _, c := range cookies {
		if c.Name == browser.PlainKeyCookie {
			token = c.Value
		}
	}
	cookie := browser.PlainKeyCookie + "=" + token
	page := []string{"Cookie", cookie, browser.WriteHeader, csrf, "Origin", "http://" + r.g.server.Addr().String()}
	r.wantStatus("the administration", r.without("GET", "/session", "", page...), 200, `"type":"workspace-service"`)
	body := chatBody("@mock/gpt-4o-mini", "hi", "")
	for what, headers := range map[string][]string{
		"by its cookie": page, "as a bearer": {"Authorization", "Bearer " + token}, "as a key": {"X-Gateway-Api-Key", token}, "as a key of a provider": {"X-Api-Key", token},
	} {
		r.wantStatus("a model "+what, r.without("POST", "/chat/completions", body, headers...), 401, "")
		r.wantStatus("models "+what, r.without("GET", "/models", "", headers...), 401, "")
	}
	if logs := r.admin("GET", "/logs?page_size=50", ""); strings.Contains(fmt.Sprint(logs), token) {
		t.Error("the token is in the log")
	}
}
