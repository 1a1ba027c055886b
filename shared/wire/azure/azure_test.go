package azure

import "testing"

func TestPathsOfAzuresClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, query, below, want string }{
		{"/openai/deployments/dep/chat/completions", "api-version=2024-10-21", "/chat/completions", "deployment=dep"},
		{"/openai/deployments/dep/completions", "", "/completions", "deployment=dep"},
		{"/openai/deployments/a%20b/embeddings", "api-version=v&x=1", "/embeddings", "x=1&deployment=a+b"},
		{"/openai/deployments/@slug/gpt-4o/audio/speech", "deployment=other", "/audio/speech", "deployment=%40slug%2Fgpt-4o"},
		{"/openai/deployments/a%2Fb/images/edits", "", "/images/edits", "deployment=a%2Fb"},
		{"/openai/realtime", "api-version=v&deployment=dep", "/realtime", "deployment=dep"},
		{"/openai/files/f1", "api-version=v", "/files/f1", ""},
		{"/openai/files/f1", "", "", ""},
		{"/openai/v1/realtime", "model=m", "/realtime", "model=m"},
		{"/openai/v1/realtime/client_secrets", "", "/realtime/client_secrets", ""},
		{"/openai/v1/realtimes", "", "", ""},
		{"/openai/v1/responses", "", "", ""},
		{"/openai/deployments//chat/completions", "api-version=v", "", ""},
		{"/openai/deployments/dep/extensions/chat", "api-version=v", "", ""},
		{"/openai/deployments/chat/completions", "api-version=v", "/completions", "deployment=chat"},
		{"/openai", "api-version=v", "", ""},
		{"/openaix/files", "api-version=v", "", ""},
		{"/chat/completions", "api-version=v", "", ""},
	} {
		below, deployment, ok := SplitPath(c.path, c.query)
		if ok != (c.below != "") || ok && (below != c.below || Query(c.query, deployment) != c.want) {
			t.Errorf("%s?%s: %s?%s, %v", c.path, c.query, below, Query(c.query, deployment), ok)
		}
	}
	for query, want := range map[string]string{"": "", "deployment=a%2Fb": "a/b", "deployments=x": "", "a=1&deployment=%zz": "", "a=1&deployment=b": "b"} {
		if got := Deployment(query); got != want {
			t.Errorf("%s: %q", query, got)
		}
	}
}
