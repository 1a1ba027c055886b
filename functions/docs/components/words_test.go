package components

import "testing"

func TestWordsOfNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"workspace_id": "Workspace Id", "createConfig": "Create Config", "hit-rate": "Hit Rate", "getJSONOf": "Get JSONOf", "": ""} {
		if got := join(split(name)); got != want {
			t.Errorf("split(%q) = %q, want %q", name, got, want)
		}
	}
	for word, want := range map[string]string{"Keys": "Key", "Policies": "Policy", "Batches": "Batch", "Access": "Access", "Status": "Status", "Responses": "Response", "Data": "Data"} {
		if got := singular(word); got != want {
			t.Errorf("singular(%q) = %q, want %q", word, got, want)
		}
	}
	for name, want := range map[string]string{"GraphsGraphsCost": "Graphs Cost", "WorkspacesWorkspaceId": "Workspace Id", "UserRoleUserRoleName": "User Role Name", "AgentServerAgent": "Agent Server Agent"} {
		if got := join(split(name).once()); got != want {
			t.Errorf("%q.once() = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"UpdateWorkspaceUser": "Workspace User", "ScimCreateUser": "Scim User", "ChatComplete": "Chat Complete", "List": "List"} {
		if got := join(split(name).resource()); got != want {
			t.Errorf("%q.resource() = %q, want %q", name, got, want)
		}
	}
}

func TestCommonWordsOfNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"UpdateAgentServerSkillsRequest", "UpdateAgentIntegrationSkillsRequest"}, "Update Agent Skills Request"},
		{[]string{"UsageLimitsStatus", "WorkspaceUsageLimitStatus"}, "Usage Limit Status"},
		{[]string{"ConfigCache", "ConfigTargetCache", "ConfigTargetsCache"}, "Config Cache"},
		{[]string{"Label", "View"}, ""},
	} {
		var names []words
		for _, name := range c.names {
			names = append(names, split(name))
		}
		if got := join(common(names)); got != c.want {
			t.Errorf("common(%q) = %q, want %q", c.names, got, c.want)
		}
	}
}

func join(w words) string {
	var out string
	for i, word := range w {
		if i > 0 {
			out += " "
		}
		out += word
	}
	return out
}
