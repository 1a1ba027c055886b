package routes

import (
	"fmt"
	"testing"
)

// The type of a request that is passed through is that of the route that its path reaches,
// in every spelling.
func TestPassedPathsReachTheirRoutesInEverySpelling(t *testing.T) {
	table := NewTable([]Route{
		{Method: "POST", Path: "/chat/completions", Endpoint: "chatComplete", Scope: "s"},
		{Method: "POST", Path: "/embeddings", Endpoint: "embed", Scope: "s"},
		{Method: "GET", Path: "/models", Endpoint: "models", Scope: "s"},
		{Path: AnyPath, Endpoint: "proxy", Scope: "s", BodyMode: Raw, Methods: []string{"POST", "GET"}},
	})
	any := table.Find("POST", "/v1/unknown")
	for path, want := range map[string]string{
		"/chat/completions": "[chatComplete]", "/chat/completions/": "[chatComplete]", "//chat//completions": "[chatComplete]",
		"/x/../chat/./completions": "[chatComplete]", "/%63hat/completions": "[chatComplete]", "/chat%2Fcompletions": "[chatComplete]",
		"/%2563hat/completions": "[chatComplete]", `/chat%5Ccompletions`: "[chatComplete]", "/chat;a=b/completions;c": "[chatComplete]",
		"/Chat/Completions": "[chatComplete]", "/v1/openai/chat/completions": "[chatComplete]", "/v1beta/openai/chat/completions": "[chatComplete]",
		"/openai/deployments/gpt/embeddings": "[embed]", "/threads": "[]", "/models": "[]", "/chat": "[]",
	} {
		if got := fmt.Sprint(any.Endpoints("POST", path)); got != want {
			t.Errorf("%s reaches %s, not %s", path, got, want)
		}
	}
	if got := any.Endpoints("GET", "/chat/completions"); got != nil {
		t.Errorf("GET reaches %v", got)
	}
}
