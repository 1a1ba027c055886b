package host_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"gateway/shared/host"
)

// listening serves h until the test ends.
func listening(t *testing.T, h http.Handler, o host.Options) (addr string) {
	t.Helper()
	s, err := host.Listen("127.0.0.1:0", h, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

func TestAnOverloadedServerReportsItAndIsHealthy(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "served "+r.URL.Path) })
	for _, o := range []host.Options{{MaxConns: 2}, {MaxPerAddress: 2}, {MaxConns: 2, Standard: true}, {MaxPerAddress: 2, Standard: true}} {
		addr := listening(t, h, o)
		dial := func() net.Conn {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			return c
		}
		get := func(c net.Conn, path string) (*http.Response, string) {
			_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp, string(b)
		}
		for range 2 { // held for good
			if resp, b := get(dial(), "/v1/models"); resp.StatusCode != 200 || b != "served /v1/models" || resp.Close {
				t.Fatalf("%+v: %d %s", o, resp.StatusCode, b)
			}
		}
		if resp, b := get(dial(), "/healthz"); resp.StatusCode != 200 || b != "served /healthz" || !resp.Close {
			t.Errorf("%+v: health: %d %s", o, resp.StatusCode, b)
		}
		resp, b := get(dial(), "/v1/models")
		if resp.StatusCode != 503 || !strings.Contains(b, "Too many connections") || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Content-Type") != "application/json" || !resp.Close {
			t.Errorf("%+v: %d %v %s", o, resp.StatusCode, resp.Header, b)
		}
	}
}

func TestOptionsFromTheEnvironment(t *testing.T) {
	base := host.DefaultOptions()
	for _, c := range []struct {
		name, value string
		want        func(*host.Options) // nil: rejected
	}{
		{host.EnvMaxConns, "", func(*host.Options) {}},
		{host.EnvMaxConns, "0", func(o *host.Options) { o.MaxConns = 0 }},
		{host.EnvMaxConns, "70000", func(o *host.Options) { o.MaxConns = 70000 }},
		{host.EnvMaxConns, "-1", nil},
		{host.EnvMaxConns, "many", nil},
		{host.EnvMaxConns, "1.5", nil},
		{host.EnvMaxPerAddress, "7", func(o *host.Options) { o.MaxPerAddress = 7 }},
		{host.EnvMaxPerAddress, " 7", nil},
	} {
		for _, name := range []string{host.EnvMaxConns, host.EnvMaxPerAddress} {
			t.Setenv(name, "")
		}
		t.Setenv(c.name, c.value)
		got, err := base.FromEnvironment()
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), c.name) {
				t.Errorf("%s=%q: %v", c.name, c.value, err)
			}
			continue
		}
		want := base
		c.want(&want)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s=%q: %+v, %v", c.name, c.value, got, err)
		}
	}
}
