package egress

import (
	"net/http"
	"slices"
	"testing"
)

// TestUnderscoreSpellingsAreForwardedOnlyWhereNoHeaderIsMeant enumerates the names that
// Forwardable knows: none of them can be sent in the spelling that CGI servers read alike.
func TestUnderscoreSpellingsAreForwardedOnlyWhereNoHeaderIsMeant(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"X_Gateway_Api_Key", "x_gateway_config", "X-Gateway_Trace-Id", "X_Forwarded_For", "Proxy_Authorization", "Transfer_Encoding", "Content_Length", "Accept_Encoding"} {
		if Forwardable(name) {
			t.Errorf("%s is forwarded", name)
		}
		dst := http.Header{}
		CopyRequestHeaders(dst, http.Header{name: {"1"}})
		if len(dst) != 0 {
			t.Errorf("%s is copied", name)
		}
	}
	if !Forwardable("X_Own") {
		t.Error("X_Own is not forwarded")
	}
}

func TestDropLookalikesRetainsHeadersOfTheGateway(t *testing.T) {
	t.Parallel()
	client := []string{"X_user_claims", "X-User_claims", "X_own", "Authorization", "X_api_key", "X_both", "X-Both"}
	h := http.Header{"X-User-Claims": {"gateway"}, "X_configured": {"gateway"}, "X-Configured": {"other"}}
	for _, name := range client {
		h[name] = []string{"client"}
	}
	DropLookalikes(h, func(name string) bool { return slices.Contains(client, name) }, "X-Api-Key")
	var left []string
	for name := range h {
		left = append(left, name)
	}
	slices.Sort(left)
	if want := []string{"Authorization", "X-Both", "X-Configured", "X-User-Claims", "X_configured", "X_own"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}
