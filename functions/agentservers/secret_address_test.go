package agentservers

import "testing"

func TestHeadersOfAgentsStayAtTheirAddress(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/agent-integrations", key, `{"name":"A","slug":"a","url":"https://agent.example.com","auth_type":"headers","configurations":{"headers":{"X-Pass":"saved-secret"}}}`).OK()
	for _, more := range []string{"", `,"auth_type":"none"`, `,"configurations":{"push_notifications":true}`} {
		h.Do("PUT", "/agent-integrations/a", key, `{"url":"https://attacker.example.com"`+more+`}`).RequireFault(400, "AB01", "url")
	}
	h.Do("PUT", "/agent-integrations/a", key, `{"url":"https://other.example.com","configurations":{"headers":{"X-Pass":"again"}}}`).OK()
	h.Do("PUT", "/agent-integrations/a", key, `{"url":"https://agent.example.com","auth_type":"none","configurations":{"headers":null}}`).OK()
	h.VaultReference("ref", "https://vault.example.com")
	h.Do("PUT", "/agent-integrations/a", key, `{"auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.X-Pass","secret_reference_id":"ref"}]}`).RequireFault(400, "AB01", "url")
}
