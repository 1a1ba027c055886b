package together_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/functions/agentservers"
	"gateway/functions/integrations"
	"gateway/functions/mcpservers"
	"gateway/functions/providers"
	"gateway/functions/secretreferences"
	"gateway/shared/a2a"
	"gateway/shared/admin"
	"gateway/shared/egress"
	"gateway/shared/ledger"
	"gateway/shared/mcp"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/testkit/admintest"
)

const (
	references = "/secret-references"
	reference  = `{"name":"Key of OpenAI","slug":"openai-key","manager_type":"aws_sm","secret_path":"prod/openai","tags":{"team":"a"},"auth_config":{"aws_auth_type":"accessKey","aws_access_key_id":"AKID","aws_secret_access_key":"CANARY-0123456789","aws_region":"eu-west-1"}}`
)

func newReferenceInstallation(t *testing.T) *admintest.Installation {
	t.Helper()
	rt := egress.New(egress.Policy{}, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(rt) })
	check := egress.Policy{}.CheckURL
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		l := ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{})
		return []admin.Family{
			secretreferences.New(secretreferences.Deps{CheckURL: check, Transport: rt}),
			integrations.New(integrations.Deps{Ledger: l, CheckURL: check}), providers.New(providers.Deps{Ledger: l, CheckURL: check}),
		}
	})
}

func TestMappedReferencesStay(t *testing.T) {
	t.Parallel()
	h := newReferenceInstallation(t)
	at := references + "/" + h.Do("POST", references, admintest.AdminKey, reference).OK().Text("id")
	mapped := `,"secret_mappings":[{"target_field":"key","secret_reference_id":"openai-key"}]`
	h.Do("POST", "/integrations", admintest.AdminKey, `{"name":"I","slug":"i","ai_provider_id":"openai"`+mapped+`}`).OK()
	h.Do("POST", "/virtual-keys", admintest.WorkspaceA, `{"name":"K","slug":"k","provider":"openai"`+mapped+`}`).OK()
	in := h.Do("DELETE", at, admintest.AdminKey, nil).RequireFault(409, "AB07", "").Failure()
	if !strings.Contains(in.Message, `"I"`) || !strings.Contains(in.Message, `"K"`) {
		t.Errorf("users are not named: %s", in.Message)
	}
	h.Do("PUT", "/integrations/i", admintest.AdminKey, `{"secret_mappings":[],"key":"sk-abcdefgh"}`).OK()
	h.Do("DELETE", at, admintest.AdminKey, nil).RequireFault(409, "AB07", "")
	h.Do("DELETE", "/virtual-keys/k", admintest.WorkspaceA, nil).OK()
	h.Do("DELETE", at, admintest.AdminKey, nil).OK()
	h.Do("GET", at, admintest.AdminKey, nil).RequireFault(404, "AB08", "")

	// What may be mapped: a reference of the organization that is open to the workspace.
	h.Do("POST", "/integrations", admintest.AdminKey, `{"name":"I","ai_provider_id":"openai"`+mapped+`}`).RequireFault(400, "AB01", "secret_mappings[0].secret_reference_id")
	two := h.Do("POST", references, admintest.AdminKey, strings.Replace(reference, `"tags"`, `"allowed_workspaces":["`+h.Two+`"],"tags"`, 1)).OK().Text("id")
	body := `{"name":"I","ai_provider_id":"openai","secret_mappings":[{"target_field":"key","secret_reference_id":"` + two + `"}]}`
	h.Do("POST", "/integrations", admintest.WorkspaceA, body).RequireFault(400, "AB01", "secret_mappings[0].secret_reference_id")
	h.Do("POST", "/integrations", admintest.WorkspaceB, body).OK()
	h.Do("POST", "/virtual-keys", admintest.WorkspaceA, strings.Replace(body, "ai_provider_id", "provider", 1)).RequireFault(400, "AB01", "secret_mappings[0].secret_reference_id")
	foreign := h.Do("POST", references, admintest.OtherAdmin, reference)
	h.Do("POST", "/integrations", admintest.AdminKey, strings.Replace(body, two, foreign.OK().Text("id"), 1)).RequireFault(400, "AB01", "secret_mappings[0].secret_reference_id")
}

// TestReferencesOfServersAndAgentsStay: a reference by which a registry fetches credentials
// cannot be deleted, from the mapping to the end of the last server or agent that uses it.
func TestReferencesOfServersAndAgentsStay(t *testing.T) {
	t.Parallel()
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	via := egress.New(policy, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(via) })
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	h := admintest.Build(t, func(d admin.Deps) []admin.Family {
		secrets := &provider.Loaded{Secrets: provider.NewSecrets(admintest.Sealer{}, provider.NewTokens(via, time.Now), via), Loader: resource.NewLoader(d.Resources)}
		return []admin.Family{
			secretreferences.New(secretreferences.Deps{CheckURL: policy.CheckURL, Transport: via}),
			mcpservers.New(mcpservers.Deps{CheckURL: policy.CheckURL, Opener: &mcp.Opener{Sealer: admintest.Sealer{}, Transport: via, Now: time.Now, Secrets: secrets}}),
			agentservers.New(agentservers.Deps{CheckURL: policy.CheckURL, Opener: &a2a.Opener{Sealer: admintest.Sealer{}, Transport: via, Secrets: secrets}}),
		}
	})
	at := references + "/" + h.Do("POST", references, admintest.AdminKey, reference).OK().Text("id")
	mapped := fmt.Sprintf(`,"url":%q,"auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.X-Pass","secret_reference_id":"openai-key"}]}`, gone.URL)
	h.Do("POST", "/mcp-integrations", admintest.AdminKey, `{"name":"Tools","slug":"tools","transport":"http"`+mapped).OK()
	h.Do("POST", "/agent-integrations", admintest.AdminKey, `{"name":"Helper","slug":"helper"`+mapped).OK()
	in := h.Do("DELETE", at, admintest.AdminKey, nil).RequireFault(409, "AB07", "").Failure()
	if !strings.Contains(in.Message, `"Tools"`) || !strings.Contains(in.Message, `"Helper"`) {
		t.Errorf("users are not named: %s", in.Message)
	}
	h.Do("PUT", "/mcp-integrations/tools", admintest.AdminKey, `{"secret_mappings":[],"configurations":{"headers":{"X-Pass":"known"}}}`).OK()
	h.Do("DELETE", at, admintest.AdminKey, nil).RequireFault(409, "AB07", "")
	h.Do("DELETE", "/agent-integrations/helper", admintest.AdminKey, nil).OK()
	h.Do("DELETE", at, admintest.AdminKey, nil).OK()
}

func TestADeletionAndAMappingAtATimeLeaveNoMappingToNothing(t *testing.T) {
	t.Parallel()
	h := newReferenceInstallation(t)
	for n := range 8 {
		slug := fmt.Sprintf("r-%d", n)
		h.Do("POST", references, admintest.AdminKey, strings.Replace(reference, "openai-key", slug, 1)).OK()
		done := make(chan int)
		go func() {
			done <- h.Do("POST", "/integrations", admintest.AdminKey, fmt.Sprintf(`{"name":"I","slug":"i-%d","ai_provider_id":"openai","secret_mappings":[{"target_field":"key","secret_reference_id":"%s"}]}`, n, slug)).Status
		}()
		deleted := h.Do("DELETE", references+"/"+slug, admintest.AdminKey, nil).Status
		mapped := <-done
		if (deleted == 200) == (mapped == 200) {
			t.Errorf("deleted %d and mapped %d", deleted, mapped)
		}
	}
}
