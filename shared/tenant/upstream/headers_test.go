package upstream_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/tenant/upstream"
)

// blocked are names that no client's header reaches an upstream by, in either mode and at
// either end of a new name.
var blocked = []string{
	"Cookie", "Set-Cookie", "X-Api-Key", "x-gateway-api-key", "Api-Key", "ApiKey", "X-Auth-Token", "X-Access-Token", "X-User-Claims", "X-User-JWT",
	"Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
	"Host", "Content-Length", "Content-Type", "Accept", "Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-X", "Last-Event-ID",
	"X-Gateway-Config", "X-Forwarded-For",
}

// TestForwardedHeaders: both modes, new names, and what never goes.
func TestForwardedHeaders(t *testing.T) {
	t.Parallel()
	client := http.Header{"X-One": {"1"}, "X-Two": {"2a", "2b"}, "X-Hop": {"h"}, "Authorization": {"Bearer mine"}, "Connection": {"close, X-Hop"}}
	for _, name := range blocked {
		if k := http.CanonicalHeaderKey(name); client[k] == nil {
			client[k] = []string{"secret"}
		}
	}
	for conf, want := range map[string]http.Header{
		`[]`:                 {},
		`["x-one","absent"]`: {"X-One": {"1"}},
		`{"mode":"allowlist","headers":["X-Two",{"from":"x-one","to":"X-First"}]}`: {"X-Two": {"2a", "2b"}, "X-First": {"1"}},
		`["Authorization"]`:                         {"Authorization": {"Bearer mine"}},
		`["X-Hop"]`:                                 {},
		`{"mode":"all-except","headers":[]}`:        {"X-One": {"1"}, "X-Two": {"2a", "2b"}, "Authorization": {"Bearer mine"}},
		`{"mode":"all-except","headers":["x-two"]}`: {"X-One": {"1"}, "Authorization": {"Bearer mine"}},
		`{"mode":"all-except","headers":[{"from":"X-ONE","to":"X-Other"},"AUTHORIZATION"]}`: {"X-Two": {"2a", "2b"}},
	} {
		if bad := upstream.CheckForward(json.RawMessage(conf)); bad != nil {
			t.Errorf("%s: %v", conf, bad)
		}
		var f upstream.Forward
		if err := json.Unmarshal([]byte(conf), &f); err != nil {
			t.Fatal(err)
		}
		got := http.Header{}
		f.Copy(got, client)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", conf, diff)
		}
	}
}

// TestBlockedHeaders: at neither end of a name, whatever its case; what is stored all the
// same does not go.
func TestBlockedHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range blocked {
		for _, spelt := range []string{name, strings.ToUpper(name), strings.ToLower(name)} {
			for _, conf := range []string{`["` + spelt + `"]`, `[{"from":"` + spelt + `","to":"X-Fine"}]`, `[{"from":"X-Fine","to":"` + spelt + `"}]`, `{"mode":"allowlist","headers":["` + spelt + `"]}`} {
				if upstream.CheckForward(json.RawMessage(conf)) == nil {
					t.Errorf("%s is saved", conf)
				}
				var f upstream.Forward
				if err := json.Unmarshal([]byte(conf), &f); err != nil {
					t.Fatal(err)
				}
				got := http.Header{}
				if f.Copy(got, http.Header{http.CanonicalHeaderKey(name): {"v"}, "X-Fine": {"v"}}); len(got) > 0 {
					t.Errorf("%s: %v goes", conf, got)
				}
			}
		}
	}
	for _, conf := range []string{`"X-A"`, `{}`, `{"mode":"some","headers":[]}`, `[1]`, `[{"from":"X-A"}]`, `[{"to":"X-A"}]`, `["X A"]`, `["X-A\r\nX-B"]`, `[""]`, `{"mode":"allowlist","headers":[{"from":"X-A","to":""}]}`, `[` + strings.Repeat(`"X-A",`, 64) + `"X-A"]`} {
		if upstream.CheckForward(json.RawMessage(conf)) == nil {
			t.Errorf("%s is saved", conf)
		}
	}
}
