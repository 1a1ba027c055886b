package gate

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/shared/a2a"
	"gateway/shared/provider"
)

// TestCredentialsAreRedactedFromReplies parses every kind of response of an agent that echoes
// the request's headers.
func TestCredentialsAreRedactedFromReplies(t *testing.T) {
	t.Parallel()
	const secret = "AGENT-SECRET-ERR-123"
	headers := http.Header{"Authorization": {"Bearer " + secret}, "X-Custom": {"custom-secret-value"}}
	text, err := json.Marshal("bad credential Bearer " + secret + ` custom-secret-value \u0041GENT`)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(what string, raw []byte) {
		t.Helper()
		if len(raw) == 0 || strings.Contains(string(raw), secret) || strings.Contains(string(raw), "custom-secret-value") {
			t.Errorf("%s: %s", what, raw)
		}
	}
	for _, binding := range []string{a2a.JSONRPC, a2a.REST} {
		for name, raw := range map[string]string{
			"result": `{"jsonrpc":"2.0","id":1,"result":{"parts":[{"text":` + string(text) + `}]}}`,
			"error":  `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":` + string(text) + `,"data":[` + string(text) + `]}}`,
		} {
			v := &requestState{call: &Call{}, req: &request{op: opSend}, agent: &agentRoute{iface: a2a.Interface{Binding: binding}, secrets: provider.HeaderSecrets(nil, headers, nil, nil)}}
			for _, status := range []int{200, 400} {
				got, err := parseReply(v, status, []byte(raw), &outgoing{id: json.RawMessage("1")})
				if err != nil {
					continue // the error text is the gateway's
				}
				if got.err != nil {
					data, _ := json.Marshal([]any{got.err.message, got.err.data})
					shows(binding+" "+name, data)
					continue
				}
				shows(binding+" "+name, got.raw)
			}
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"name":"A","url":"http://127.0.0.1/","description":` + string(text) + `,"skills":[{"id":"s","description":` + string(text) + `}]}`))
	}))
	t.Cleanup(s.Close)
	card, err := a2a.Fetch(t.Context(), http.DefaultTransport, s.URL, headers, nil)
	if err != nil {
		t.Fatal(err)
	}
	shows("card", card)
}
