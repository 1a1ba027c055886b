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
	c.relay = &Relay{Options: Options{Transport: strict, TrustedTransport: trusting}}
	c.target.Choice.Target.Provider, _ = provider.ByID("openai")
	if out(c.relay, &c.target) != strict {
		t.Error("a provider's own address is trusted")
	}
	c.target.Choice.Target.CustomHost = "https://10.1.2.3:8000/v1"
	if out(c.relay, &c.target) != trusting {
		t.Error("a custom host is not trusted")
	}
}
