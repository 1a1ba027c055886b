package routes

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"gateway/shared/chat"
)

// Routes are found below other bases that clients make; what no route of the table means
// stays byte for byte.
func TestPathsBelowOtherBases(t *testing.T) {
	t.Parallel()
	all := append(declared(), Route{Method: http.MethodPost, Path: "/messages", Name: "messages", Meter: func([]byte) (m chat.Meter) { return m }})
	all[5].Native = []Route{{Method: http.MethodPost, Path: "/model/{model+}/converse", Name: "converse"}}
	table := NewTable(all)
	for _, c := range []struct{ method, uri, want string }{
		{"POST", "/v1/messages?beta=true", "/v1/messages?beta=true"},
		{"POST", "/messages?beta=true", "/v1/messages?beta=true"},
		{"POST", "/v1/v1/messages?beta=true", "/v1/messages?beta=true"},
		{"GET", "/files/a%2Fb/content", "/v1/files/a%2Fb/content"},
		{"GET", "/v1/v1/files/a%2Fb", "/v1/files/a%2Fb"},
		{"POST", "/model/us.anthropic:0/converse", "/v1/model/us.anthropic:0/converse"},
		{"POST", "/v1/v1/model/a/converse", "/v1/model/a/converse"},
		{"POST", "/model/us.anthropic%3A0/invoke", "/v1/model/us.anthropic%3A0/invoke"},
		{"POST", "/model/a/invoke-with-response-stream", "/v1/model/a/invoke-with-response-stream"},
		{"POST", "/models", "/models"},
		{"POST", "/v1/models/gemini-x:generateContent", "/v1/v1beta/models/gemini-x:generateContent"},
		{"POST", "/v1/models/gemini-x:streamGenerateContent?alt=sse", "/v1/v1beta/models/gemini-x:streamGenerateContent?alt=sse"},
		{"POST", "/v1/v1/models/gemini-x:countTokens", "/v1/v1beta/models/gemini-x:countTokens"},
		{"POST", "/models/gemini-x:embedContent", "/v1/v1beta/models/gemini-x:embedContent"},
		{"POST", "/v1/models/%40slug/a%2Fb:generateContent", "/v1/v1beta/models/%40slug/a%2Fb:generateContent"},
		{"POST", "/v1beta/@slug/model:generateContent", "/v1/v1beta/models/@slug/model:generateContent"},
		{"POST", "/v1/v1beta/%40slug/model:streamGenerateContent?alt=sse", "/v1/v1beta/models/%40slug/model:streamGenerateContent?alt=sse"},
		{"POST", "/v1/@slug/a/b:countTokens", "/v1/v1beta/models/@slug/a/b:countTokens"},
		{"POST", "/@slug/model:generateContent", "/v1/v1beta/models/@slug/model:generateContent"},
		{"POST", "/v1beta/anthropic/claude-x:generateContent", "/v1/v1beta/models/anthropic/claude-x:generateContent"},
		{"POST", "/v1/anthropic/claude-x:generateContent", "/v1/anthropic/claude-x:generateContent"},
		{"POST", "/v1beta/tunedModels/mine:generateContent", "/v1/v1beta/tunedModels/mine:generateContent"},
		{"POST", "/v1/v1beta/models/a/b:generateContent", "/v1/v1beta/models/a/b:generateContent"},
		{"POST", "/v1/proxy/v1beta/a/b:generateContent", "/v1/proxy/v1beta/a/b:generateContent"},
		{"GET", "/v1/models/gemini-x:generateContent", "/v1/models/gemini-x:generateContent"},
		{"POST", "/v1/models/:generateContent", "/v1/models/:generateContent"},
		{"POST", "/v1/models/llama3:8b", "/v1/models/llama3:8b"},
		{"POST", "/v1/proxy/models/m:generateContent", "/v1/proxy/models/m:generateContent"},
		{"GET", "/messages", "/messages"},
		{"POST", "/v1/v1/v1/messages", "/v1/v1/v1/messages"},
		{"POST", "/v1/v1//messages", "/v1/v1//messages"},
		{"POST", "/v1/proxy/v1/messages", "/v1/proxy/v1/messages"},
		{"POST", "/v1/v1/anything", "/v1/v1/anything"},
		{"POST", "/anything", "/anything"},
		{"POST", "/v1beta/interactions", "/v1/v1beta/interactions"},
		{"GET", "/v1beta/interactions/a%2Fb?x=1", "/v1/v1beta/interactions/a%2Fb?x=1"},
		{"POST", "/v1beta1/projects/p/locations/l/publishers/google/models/m:countTokens", "/v1/v1beta1/projects/p/locations/l/publishers/google/models/m:countTokens"},
		{"POST", "/upload/v1beta/files", "/v1/upload/v1beta/files"},
		{"POST", "/v2/embed", "/v1/v2/embed"},
		{"POST", "/v2/embedding", "/v2/embedding"},
		{"PATCH", "/v1beta/interactions", "/v1beta/interactions"},
		{"POST", "/v1/v1/v1beta/interactions", "/v1/v1/v1beta/interactions"},
		{"POST", "/openai/deployments/dep/messages?api-version=v", "/openai/deployments/dep/messages?api-version=v"},
		{"GET", "/openai/files/a%2Fb?api-version=v&limit=1", "/v1/files/a%2Fb?limit=1"},
		{"GET", "/v1/openai/files/a%2Fb?api-version=v", "/v1/files/a%2Fb"},
		{"POST", "/openai/v1/messages?beta=true", "/v1/messages?beta=true"},
		{"POST", "/openai/v1/anything", "/v1/anything"},
		{"POST", "/v1/openai/v1/messages", "/v1/openai/v1/messages"},
		{"GET", "/v1/openai/files/a%2Fb", "/v1/openai/files/a%2Fb"},
		{"POST", "//messages", "//messages"},
		{"GET", "/", "/"},
		{"GET", "/v1", "/v1"},
		{"GET", "/v1/v1", "/v1/v1"},
	} {
		req := httptest.NewRequest(c.method, "http://gateway.test"+c.uri, nil)
		req.RequestURI = c.uri
		got := table.Canonical(req)
		if got.RequestURI != c.want || got.URL.RequestURI() != c.want && c.want != "//messages" {
			t.Errorf("%s %s: %s, %s", c.method, c.uri, got.RequestURI, got.URL.RequestURI())
		}
		if (got == req) != (c.uri == c.want) || req.RequestURI != c.uri {
			t.Errorf("%s %s: the request of the caller was changed", c.method, c.uri)
		}
	}
}
