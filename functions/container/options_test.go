package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"gateway/shared/app"
	"gateway/shared/host"
	"gateway/shared/host/placement"
)

// The load balancer must be the one that ends idle connections, and it is the only
// address that connections come from.
func TestOptionsBehindALoadBalancer(t *testing.T) {
	core := &app.Core{Settings: app.Settings{StandardHTTP: true}}
	for _, name := range []string{host.EnvMaxConns, host.EnvMaxPerAddress} {
		t.Setenv(name, "")
	}
	o, err := serveOptions(core)
	if err != nil || o.IdleTime <= placement.BalancerIdle || o.MaxPerAddress != 0 || o.MaxConns == 0 || !o.Standard {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv(host.EnvMaxPerAddress, "5")
	t.Setenv(host.EnvMaxConns, "6")
	if o, err = serveOptions(core); err != nil || o.MaxPerAddress != 5 || o.MaxConns != 6 {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv(host.EnvMaxConns, "x")
	if _, err = serveOptions(core); err == nil {
		t.Error("a bound that is no number is taken")
	}
}

// Pages of listed origins may call the data plane: their preflight requests have no key and are
// answered before the routes. In a row: the variable is the process's.
func TestListedPagesCallTheDataPlane(t *testing.T) {
	const page = "https://app.example.com"
	t.Setenv("GATEWAY_ALLOWED_ORIGINS", page)
	o, err := serveOptions(&app.Core{})
	if err != nil {
		t.Fatal(err)
	}
	h := front(o, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	send := func(method, path string, header http.Header) (int, http.Header) {
		r := httptest.NewRequest(method, path, nil)
		r.Header = header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Header()
	}
	for _, c := range []struct {
		method, origin string
		status         int
		allowed        string
	}{
		{"OPTIONS", page, 204, page},
		{"OPTIONS", "https://other.example.com", 401, ""},
		{"POST", page, 401, page}, // of the routes, and readable
		{"POST", "https://other.example.com", 401, ""},
		{"POST", "", 401, ""},
	} {
		header := http.Header{"Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"x-gateway-api-key,content-type"}}
		if c.origin != "" {
			header.Set("Origin", c.origin)
		}
		status, got := send(c.method, "/v1/chat/completions", header)
		if status != c.status || got.Get("Access-Control-Allow-Origin") != c.allowed || (status == 204) != (got.Get("Access-Control-Allow-Headers") != "") {
			t.Errorf("%s of %q: %d %v", c.method, c.origin, status, got)
		}
	}
	t.Setenv("GATEWAY_ALLOWED_ORIGINS", "app.example.com")
	if _, err := serveOptions(&app.Core{}); err == nil {
		t.Error("a wrong list is accepted")
	}
}
