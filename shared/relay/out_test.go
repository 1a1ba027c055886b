package relay

import (
	"net/http"
	"testing"

	"gateway/shared/provider"
)

type way struct{ http.RoundTripper }

// Requests to custom hosts alone leave by the way of trusted ones.
func TestTheWayOutIsThatOfTheHost(t *testing.T) {
	t.Parallel()
	strict, trusting := new(way), new(way)
	c := newCall()
	c.Relay = &Relay{Options: Options{Transport: strict, Trusting: trusting}}
	c.To.Target.Provider, _ = provider.ByID("openai")
	if c.out() != strict {
		t.Error("a provider's own address is trusted")
	}
	c.To.Target.CustomHost = "https://10.1.2.3:8000/v1"
	if c.out() != trusting {
		t.Error("a custom host is not trusted")
	}
}
