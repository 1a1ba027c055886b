package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestRenewReturnsTheNextToken(t *testing.T) {
	t.Parallel()
	status, body := http.StatusOK, ""
	var form, basic string
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/a", "token_endpoint": s.URL + "/t", "jwks_uri": s.URL + "/k"})
	})
	mux.HandleFunc("POST /t", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		form, basic = r.PostForm.Encode(), r.Header.Get("Authorization")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	c := &Client{Issuer: s.URL, ID: "the-client", Secret: "s", Method: Post, Scopes: []string{"offline_access"}, Transport: http.DefaultTransport, Now: time.Now}
	for name, w := range map[string]struct {
		status int
		body   string
		next   string
		over   bool // the provider says so
	}{
		"rotated":           {200, `{"access_token":"a","refresh_token":"r2"}`, "r2", false},
		"the same stays":    {200, `{"access_token":"a"}`, "r1", false},
		"over":              {400, `{"error":"invalid_grant"}`, "", true},
		"over, with a 401":  {401, `{"error":"invalid_grant"}`, "", false},
		"another client":    {401, `{"error":"invalid_client"}`, "", false},
		"another error":     {400, `{"error":"temporarily_unavailable"}`, "", false},
		"down":              {503, `down`, "", false},
		"no JSON":           {200, `<html>`, "", false},
		"no tokens":         {200, `{}`, "", false},
		"a forged ID token": {200, `{"access_token":"a","id_token":"a.b.c"}`, "", false},
		"truncated":         {400, `{"error":"invalid_grant"`, "", false},
	} {
		status, body = w.status, w.body
		next, err := c.Renew(context.Background(), "r1", "ann-1")
		if next != w.next || (err == nil) != (w.next != "") || errors.Is(err, ErrNotRenewed) != w.over {
			t.Errorf("%s: %q %v", name, next, err)
		}
	}
	if form != "client_id=the-client&client_secret=s&grant_type=refresh_token&refresh_token=r1" || basic != "" {
		t.Errorf("sent %q %q", form, basic)
	}
	c.Method, status, body = Basic, 200, `{"access_token":"a"}`
	if next, err := c.Renew(context.Background(), "r1", "ann-1"); next != "r1" || err != nil || form != "grant_type=refresh_token&refresh_token=r1" || basic == "" {
		t.Errorf("sent %q %q: %q %v", form, basic, next, err)
	}
	s.Close()
	if _, err := c.Renew(context.Background(), "r1", "ann-1"); err == nil || errors.Is(err, ErrNotRenewed) {
		t.Errorf("unreachable: %v", err)
	}
}
