package http1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
)

// A server that ends at once has nothing to complain of, whichever of the two closes
// the listener first.
func TestAServerThatStopsHasNoError(t *testing.T) {
	t.Parallel()
	for _, standard := range []bool{false, true} {
		for range 200 {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := New(http.NotFoundHandler(), Options{Standard: standard})
			served := make(chan error, 1)
			go func() { served <- s.Serve(ln) }()
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request(t, ln.Addr().String()))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if err := s.Shutdown(context.Background()); err != nil {
				t.Fatalf("standard %v: %v", standard, err)
			}
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Fatalf("standard %v: %v", standard, err)
			}
		}
	}
}

func request(t *testing.T, addr string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// What net/http closes may be closed already.
func TestAListenerIsClosedByBoth(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (countedListener{ln, New(http.NotFoundHandler(), Options{})}).Close(); err != nil {
		t.Error(err)
	}
}
