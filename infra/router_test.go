package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// edgeRequest is a request as a CloudFront function sees it, and where it should
// go.
type edgeRequest struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	URI     string            `json:"uri"`
	Query   map[string]string `json:"query"`
	Headers map[string]string `json:"headers"`
	Place   string            `json:"place"`
	Sent    string            `json:"sent"` // URI at the origin; empty: the same
}

var edgeRequests = []edgeRequest{
	{Name: "chat", Method: "POST", URI: "/v1/chat/completions", Headers: map[string]string{"content-length": "1000"}, Place: "api"},
	{Name: "chat at the bound", Method: "POST", URI: "/v1/chat/completions", Headers: map[string]string{"content-length": "3500000"}, Place: "api"},
	{Name: "chat above it", Method: "POST", URI: "/v1/chat/completions", Headers: map[string]string{"content-length": "3500001"}, Place: "container"},
	{Name: "chat of unknown length", Method: "POST", URI: "/v1/chat/completions", Place: "container"},
	{Name: "multipart", Method: "POST", URI: "/v1/embeddings", Headers: map[string]string{"content-length": "10", "content-type": "multipart/form-data; boundary=x"}, Place: "container"},
	{Name: "a config header that fits", Method: "POST", URI: "/v1/messages", Headers: map[string]string{"content-length": "10", "x-gateway-config": strings.Repeat("x", 4096)}, Place: "api"},
	{Name: "one that does not", Method: "POST", URI: "/v1/messages", Headers: map[string]string{"content-length": "10", "x-gateway-config": strings.Repeat("x", 4097)}, Place: "container"},
	{Name: "many headers", Method: "POST", URI: "/v1/messages", Headers: map[string]string{"content-length": "10", "x-gateway-metadata": strings.Repeat("x", 8192)}, Place: "container"},
	{Name: "models", Method: "GET", URI: "/v1/models", Place: "api"},
	{Name: "a provider's model", Method: "GET", URI: "/v1/models/gpt-4o", Place: "container"},
	{Name: "responses", Method: "POST", URI: "/v1/responses", Headers: map[string]string{"content-length": "10"}, Place: "api"},
	{Name: "a kept response", Method: "GET", URI: "/v1/responses/r1", Place: "container"},
	{Name: "batches", Method: "POST", URI: "/v1/batches", Headers: map[string]string{"content-length": "10"}, Place: "api"},
	{Name: "a batch", Method: "GET", URI: "/v1/batches/b1", Place: "container"},
	{Name: "pass-through", Method: "POST", URI: "/v1/assistants", Headers: map[string]string{"content-length": "10"}, Place: "container"},
	{Name: "pass-through of a path of ours", Method: "POST", URI: "/v1/proxy/chat/completions", Place: "container"},
	{Name: "files", Method: "POST", URI: "/v1/files", Place: "container"},
	{Name: "realtime", Method: "GET", URI: "/v1/realtime", Place: "container"},
	{Name: "Live sessions", Method: "GET", URI: "/v1/live/sessions", Place: "container"},
	{Name: "Live sessions of Gemini", Method: "GET", URI: "/v1/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", Place: "container"},
	{Name: "responses over a WebSocket", Method: "GET", URI: "/v1/responses", Place: "container"},
	{Name: "audio", Method: "POST", URI: "/v1/audio/transcriptions", Place: "container"},
	{Name: "administration", Method: "POST", URI: "/v1/configs", Headers: map[string]string{"content-length": "10"}, Place: "api"},
	{Name: "administration below", Method: "PUT", URI: "/v1/configs/pc-1", Place: "api"},
	{Name: "administration of version 2", Method: "GET", URI: "/v2/configs", Place: "api", Sent: "/v1/configs"},
	{Name: "administration at the root", Method: "GET", URI: "/.well-known/oauth-authorization-server/v1", Place: "api", Sent: "/v1/.well-known/oauth-authorization-server/v1"},
	{Name: "messages with the version twice", Method: "POST", URI: "/v1/v1/messages", Headers: map[string]string{"content-length": "10"}, Place: "api", Sent: "/v1/messages"},
	{Name: "messages without it", Method: "POST", URI: "/messages", Headers: map[string]string{"content-length": "10"}, Place: "api", Sent: "/v1/messages"},
	{Name: "models without it", Method: "GET", URI: "/models", Place: "api", Sent: "/v1/models"},
	{Name: "a model of Bedrock's form without it", Method: "POST", URI: "/model/anthropic.claude-x%3A0/invoke", Headers: map[string]string{"content-length": "10"}, Place: "container", Sent: "/v1/model/anthropic.claude-x%3A0/invoke"},
	{Name: "Gemini without it", Method: "POST", URI: "/v1beta/models/gemini-x:countTokens", Headers: map[string]string{"content-length": "10"}, Place: "container", Sent: "/v1/v1beta/models/gemini-x:countTokens"},
	{Name: "interactions without it", Method: "DELETE", URI: "/v1beta/interactions/i1", Place: "container", Sent: "/v1/v1beta/interactions/i1"},
	{Name: "Vertex without it", Method: "POST", URI: "/v1beta1/projects/p", Place: "container", Sent: "/v1/v1beta1/projects/p"},
	{Name: "Gemini's uploads without it", Method: "POST", URI: "/upload/v1beta/files", Place: "container", Sent: "/v1/upload/v1beta/files"},
	{Name: "what only begins alike", Method: "POST", URI: "/uploads", Place: "container"},
	{Name: "Cohere's chat", Method: "POST", URI: "/v2/chat", Place: "container", Sent: "/v1/v2/chat"},
	{Name: "version 2 itself", Method: "GET", URI: "/v2", Place: "container", Sent: "/v1"},
	{Name: "an Azure deployment", Method: "POST", URI: "/openai/deployments/dep/chat/completions", Query: map[string]string{"api-version": "v"}, Headers: map[string]string{"content-length": "10"}, Place: "api", Sent: "/v1/chat/completions?deployment=dep"},
	{Name: "one of completions", Method: "POST", URI: "/v1/openai/deployments/dep/completions", Headers: map[string]string{"content-length": "10"}, Place: "api", Sent: "/v1/completions?deployment=dep"},
	{Name: "none", Method: "POST", URI: "/openai/deployments//completions", Place: "container", Sent: "/v1/openai/deployments//completions"},
	{Name: "Azure's responses", Method: "POST", URI: "/openai/responses", Query: map[string]string{"api-version": "v", "x": "1"}, Headers: map[string]string{"content-length": "10"}, Place: "api", Sent: "/v1/responses?x=1"},
	{Name: "Azure's own version", Method: "POST", URI: "/openai/v1/chat/completions", Headers: map[string]string{"content-length": "10"}, Place: "api", Sent: "/v1/chat/completions"},
	{Name: "Azure's sessions", Method: "GET", URI: "/v1/openai/v1/realtime", Query: map[string]string{"model": "m"}, Place: "container", Sent: "/v1/realtime?model=m"},
	{Name: "another host's", Method: "POST", URI: "/v1/openai/responses", Place: "container"},
	{Name: "a path that only begins alike", Method: "GET", URI: "/messages.txt", Place: "container"},
	{Name: "another case is another path", Method: "POST", URI: "/v1/Chat/completions", Headers: map[string]string{"content-length": "10"}, Place: "container"},
	{Name: "an escaped slash", Method: "POST", URI: "/v1/chat%2Fcompletions", Headers: map[string]string{"content-length": "10"}, Place: "container"},
	{Name: "two slashes", Method: "POST", URI: "/v1//chat/completions", Headers: map[string]string{"content-length": "10"}, Place: "container"},
	{Name: "a run of a prompt", Method: "POST", URI: "/v1/prompts/p/completions", Headers: map[string]string{"content-length": "10"}, Place: "api"},
	{Name: "a large one", Method: "POST", URI: "/v1/prompts/p/completions", Headers: map[string]string{"content-length": "3500001"}, Place: "container"},
	{Name: "one with a large config", Method: "POST", URI: "/v1/prompts/p/render", Headers: map[string]string{"content-length": "10", "x-gateway-config": strings.Repeat("x", 4097)}, Place: "container"},
	{Name: "a server of MCP", Method: "POST", URI: "/v1/mcp/s/mcp", Headers: map[string]string{"content-length": "10", "authorization": "Bearer k"}, Place: "container"},
	{Name: "its stream", Method: "GET", URI: "/v1/mcp/w/s/mcp", Headers: map[string]string{"x-gateway-api-key": "k"}, Place: "container"},
	{Name: "administration of a prompt", Method: "PUT", URI: "/v1/prompts/p", Place: "api"},
	{Name: "administration of versions of a prompt", Method: "POST", URI: "/v1/prompts/p/versions/completions/x", Place: "api"},
	{Name: "outside", Method: "GET", URI: "/favicon.ico", Place: "container"},
}

// route runs the edge's function in node over requests and gives where they went.
func route(t *testing.T, o options, requests []edgeRequest) (places, uris []string) {
	t.Helper()
	source := router(o)
	if len(source) > maxRouter {
		t.Errorf("the edge's function has %d bytes, at most %d are allowed", len(source), maxRouter)
	}
	code, ok := strings.CutPrefix(source, "import cf from 'cloudfront';\n")
	if !ok {
		t.Fatal("the function does not begin with its import")
	}
	in, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	harness := `let origin; const cf = {selectRequestOriginById: id => { origin = id; }};` + code + `
const out = ` + string(in) + `.map(r => {
  origin = 'api';
  const headers = {};
  for (const k in r.headers || {}) headers[k] = {value: r.headers[k]};
  const query = {};
  for (const k in r.query || {}) query[k] = {value: r.query[k]};
  const sent = handler({request: {method: r.method, uri: r.uri, headers: headers, querystring: query}});
  const asked = Object.keys(query).map(k => k + '=' + query[k].value).join('&');
  if (sent.statusCode) return {place: 'itself', uri: sent.statusCode + ' ' + sent.headers['www-authenticate'].value};
  return {place: origin, uri: sent.uri + (asked ? '?' + asked : '')};
});
console.log(JSON.stringify(out));`
	raw, err := exec.Command("node", "-e", harness).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	var out []struct{ Place, URI string }
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	for _, r := range out {
		places, uris = append(places, r.Place), append(uris, r.URI)
	}
	return places, uris
}

// TestEdgeKnowsHeadersUnderOtherPrefixes: a large config goes to the container under
// each name that it may have, and under no other.
func TestEdgeKnowsHeadersUnderOtherPrefixes(t *testing.T) {
	large := func(name string) edgeRequest {
		return edgeRequest{Method: "POST", URI: "/v1/messages", Headers: map[string]string{"content-length": "10", name: strings.Repeat("x", 4097)}}
	}
	places, _ := route(t, options{chat: "lambda", container: "on", headerAliases: "x-acme,x-other"}, []edgeRequest{
		large("x-gateway-config"), large("x-acme-config"), large("x-other-config"), large("x-third-config"),
	})
	if want := []string{"container", "container", "container", "api"}; !slices.Equal(places, want) {
		t.Errorf("%v, want %v", places, want)
	}
}

func TestEdgeChoosesTheOrigin(t *testing.T) {
	places, uris := route(t, options{chat: "lambda", container: "on"}, edgeRequests)
	for i, r := range edgeRequests {
		if places[i] != r.Place {
			t.Errorf("%s: %s %s goes to %s, want %s", r.Name, r.Method, r.URI, places[i], r.Place)
		}
		want := r.Sent
		if want == "" {
			want = r.URI
		}
		if uris[i] != want {
			t.Errorf("%s: sent as %s, want %s", r.Name, uris[i], want)
		}
	}
}

func TestEdgeWithoutAContainer(t *testing.T) {
	places, _ := route(t, options{chat: "lambda", container: "off"}, edgeRequests)
	for i, r := range edgeRequests {
		if places[i] != "api" {
			t.Errorf("%s goes to %s", r.Name, places[i])
		}
	}
}

func TestEdgeWithChatInTheContainer(t *testing.T) {
	places, _ := route(t, options{chat: "container", container: "on"}, edgeRequests)
	for i, r := range edgeRequests {
		want := "container"
		if strings.HasPrefix(r.Name, "administration") {
			want = "api"
		}
		if places[i] != want {
			t.Errorf("%s goes to %s, want %s", r.Name, places[i], want)
		}
	}
}

// TestEdgeTellsWhereToSignIn: without a container the edge answers MCP clients that have no
// credential, because the API renames the header that tells them where to get one.
func TestEdgeTellsWhereToSignIn(t *testing.T) {
	host := map[string]string{"host": "d1.cloudfront.net"}
	with := func(name, v string) map[string]string { return map[string]string{"host": "d1.cloudfront.net", name: v} }
	requests := []edgeRequest{
		{Method: "POST", URI: "/v1/mcp/s/mcp", Headers: host},
		{Method: "GET", URI: "/v1/mcp/w/s/mcp", Headers: host},
		{Method: "POST", URI: "/v1/mcp/s/mcp", Headers: with("authorization", "Bearer k")},
		{Method: "POST", URI: "/v1/mcp/s/mcp", Headers: with("x-acme-api-key", "k")},
		{Method: "POST", URI: "/v1/mcp/s/mcp", Headers: with("origin", "https://app.example.com")},
		{Method: "OPTIONS", URI: "/v1/mcp/s/mcp", Headers: host},
		{Method: "GET", URI: "/v1/mcp/v0.1/servers", Headers: host},
		{Method: "POST", URI: "/v1/mcp", Headers: host},
	}
	for address, base := range map[string]string{"": "https://d1.cloudfront.net/.well-known/oauth-protected-resource/v1", "https://ai.example.com/gw/v1": "https://ai.example.com/.well-known/oauth-protected-resource/gw/v1"} {
		places, uris := route(t, options{chat: "lambda", container: "off", publicURL: address}, requests)
		for i, r := range requests {
			if i >= 2 {
				if places[i] != "api" {
					t.Errorf("%s %s %v goes to %s", r.Method, r.URI, r.Headers, places[i])
				}
				continue
			}
			if want := `401 Bearer resource_metadata="` + base + strings.TrimPrefix(r.URI, "/v1") + `", scope="mcp"`; uris[i] != want {
				t.Errorf("%s, want %s", uris[i], want)
			}
		}
	}
}
