package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"testing"

	official "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/shared/relay/upstream"
)

// questions are what the tools of the suite's older revision ask of their client. The
// official SDK's server asks by requests in a session, which servers without sessions do
// not have: before that server, ofOneEra asks by results.
var questions = map[string]string{
	"test_sampling":                     `{"method":"sampling/createMessage","params":{"maxTokens":100,"messages":[{"role":"user","content":{"type":"text","text":"Test prompt for sampling"}}]}}`,
	"test_elicitation":                  `{"method":"elicitation/create","params":{"message":"Please provide your information","requestedSchema":{"type":"object","properties":{"username":{"type":"string"}},"required":["username"]}}}`,
	"test_elicitation_sep1034_defaults": `{"method":"elicitation/create","params":{"message":"Defaults","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}}}`,
	"test_elicitation_sep1330_enums": `{"method":"elicitation/create","params":{"message":"Enums","requestedSchema":{"type":"object","properties":{` +
		`"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
		`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
		`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
		`"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},` +
		`"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]}}}}}}`,
}

// ofOneEra stands in front of a server and leaves it one era: the official SDK's server
// answers both. Without sessions it serves the tools that ask.
func ofOneEra(t *testing.T, server string, revision string) (address string) {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = to.Scheme, to.Host, to.Host
		if p.Out.Body != nil {
			p.Out.Body = upstream.WithLength(p.Out.Body, p.Out.ContentLength)
		}
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.Header.Get("Mcp-Protocol-Version") == withoutSessions) != (revision == withoutSessions) {
			http.Error(w, "another era", http.StatusBadRequest)
			return
		}
		question := questions[r.Header.Get("Mcp-Name")]
		if r.Header.Get("Mcp-Method") != "tools/call" || question == "" {
			proxy.ServeHTTP(w, r)
			return
		}
		raw, err := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Params struct {
				InputResponses map[string]json.RawMessage `json:"inputResponses"`
			}
		}
		if err != nil || json.Unmarshal(raw, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		result := `{"resultType":"input_required","inputRequests":{"question":` + question + `}}`
		if response := m.Params.InputResponses["question"]; response != nil {
			text, _ := json.Marshal("The client said " + string(response)) // a text
			result = `{"resultType":"complete","content":[{"type":"text","text":` + string(text) + `}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + to.Path
}

// twoQuestionServer is a server with sessions whose tool asks two questions, one after the other.
func twoQuestionServer(t *testing.T) (address string) {
	t.Helper()
	s := official.NewServer(&official.Implementation{Name: "twice", Version: "1"}, nil)
	s.AddTool(&official.Tool{Name: "test_input_required_result_multi_round", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *official.CallToolRequest) (*official.CallToolResult, error) {
		for _, field := range []string{"name", "color"} {
			if _, err := r.Session.Elicit(ctx, &official.ElicitParams{Message: field, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{field: map[string]any{"type": "string"}}}}); err != nil {
				return nil, err
			}
		}
		return &official.CallToolResult{Content: []official.Content{&official.TextContent{Text: "done"}}}, nil
	})
	up := httptest.NewServer(official.NewStreamableHTTPHandler(func(*http.Request) *official.Server { return s }, nil))
	t.Cleanup(func() { up.CloseClientConnections(); up.Close() })
	return ofOneEra(t, up.URL, withSessions)
}

// unreachable are the required scenarios that no bridge can pass with the official SDK's
// server behind it, and why.
var unreachable = map[string]string{
	"input-required-result-basic-elicitation": "requires that the question is named user_name; requests in a session have no names",
	"input-required-result-multi-round":       "the SDK's server asks a client with a session once; see TestTwoRoundsCrossEras",
}

// TestServerConformanceAcrossEras requires that a gateway in front of a server of one era is
// as good a server to clients of the other era.
func TestServerConformanceAcrossEras(t *testing.T) {
	suite := prepared(t)
	g := startGateway(t)
	for revision, behind := range map[string]string{withSessions: withoutSessions, withoutSessions: withSessions} {
		t.Run(revision, func(t *testing.T) {
			slug := "across-" + revision
			g.register(slug, ofOneEra(t, everythingServer(t, behind == withoutSessions), behind), "none", "{}")
			for _, name := range failing(t, suite, "server", revision, "--url", g.keyed(workspaceKey, false)+"/"+slug+"/mcp") {
				if why := unreachable[name]; why != "" {
					t.Logf("%s: %s", name, why)
					continue
				}
				t.Errorf("%s fails", name)
			}
		})
	}
}

// TestTwoRoundsCrossEras: a server with a session that asks twice is a server of two rounds
// to a client without.
func TestTwoRoundsCrossEras(t *testing.T) {
	suite := prepared(t)
	g := startGateway(t)
	g.register("twice", twoQuestionServer(t), "none", "{}")
	cmd := exec.CommandContext(t.Context(), node(t), suite, "server", "--scenario", "input-required-result-multi-round", "--url", g.keyed(workspaceKey, false)+"/twice/mcp", "-o", t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
