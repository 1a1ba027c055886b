package provider

import (
	"strings"
	"testing"
)

// TestAzureAddresses holds every operation of Azure's rows to the two styles of
// the service: operations on a model hang below its deployment and the others
// below the resource, each with api-version; version v1 has neither.
func TestAzureAddresses(t *testing.T) {
	deployments := []Deployment{{Name: "dep a", Alias: "gpt-4o", APIVersion: "2025-04-01-preview"}, {Name: "dep-v1", Alias: "gpt-5", APIVersion: "v1"}}
	azure := Target{Provider: row(t, "azure-openai"), Credential: Credential{Fields: map[string]string{"azure_resource_name": "res", "azure_api_version": "2024-10-21"}, Deployments: deployments}}
	foundry := Target{Provider: row(t, "azure-ai"), Credential: Credential{Fields: map[string]string{"azure_foundry_url": "https://x.services.ai.azure.com/models", "azure_api_version": "2024-05-01-preview"}}}
	onDeployment := map[Operation]bool{
		Chat: true, Completions: true, Embeddings: true, ImagesGenerate: true, ImagesEdit: true, AudioSpeech: true, AudioTranscription: true, AudioTranslation: true,
	}
	for _, r := range azure.Provider.Routes {
		path := strings.Replace(r.Path, "{id}", "id-1", 1)
		byID := path != r.Path
		dated, v1 := "https://res.openai.azure.com/openai"+path+"?api-version=2024-10-21", "https://res.openai.azure.com/openai/v1"+path
		switch {
		case r.Op == Realtime:
			dated = "https://res.openai.azure.com/openai/realtime?api-version=2025-04-01-preview&deployment=dep+a"
			v1 = "https://res.openai.azure.com/openai/v1/realtime?model=dep-v1"
		case onDeployment[r.Op]:
			dated = "https://res.openai.azure.com/openai/deployments/dep%20a" + path + "?api-version=2025-04-01-preview"
		case !byID:
			dated = "https://res.openai.azure.com/openai" + path + "?api-version=2025-04-01-preview" // that of the model's deployment
		}
		if byID {
			expectURL(t, r.Op, dated)(azure.ResourceURL(r.Op, "id-1"))
			continue
		}
		expectURL(t, r.Op, dated)(azure.URL(r.Op, "gpt-4o", false))
		expectURL(t, r.Op, v1)(azure.URL(r.Op, "gpt-5", false))
		expectURL(t, r.Op, dated)(azure.URL(r.Op, "gpt-4o", true))
	}
	for _, r := range foundry.Provider.Routes {
		path := strings.Replace(r.Path, "{id}", "id-1", 1)
		byID, base := path != r.Path, "https://x.services.ai.azure.com/models"
		switch op := string(r.Op); {
		case strings.HasPrefix(op, "files_"), strings.HasPrefix(op, "batches_"):
			base = "https://x.services.ai.azure.com/openai"
		case r.Op == OCR:
			base = "https://x.services.ai.azure.com/providers/mistral/azure"
		}
		path = strings.Replace(path, "{model}", "m", 1)
		want := AddQuery(base+path, "api-version=2024-05-01-preview")
		if byID {
			expectURL(t, r.Op, want)(foundry.ResourceURL(r.Op, "id-1"))
			continue
		}
		expectURL(t, r.Op, want)(foundry.URL(r.Op, "m", false))
	}
}

// expectURL checks what URL and ResourceURL give.
func expectURL(t *testing.T, op Operation, want string) func(string, error) {
	return func(got string, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: %v\n got %s\nwant %s", op, err, got, want)
		}
	}
}

func TestAzureModels(t *testing.T) {
	deployments := []Deployment{{Name: "dep-a", Alias: "gpt-4o", APIVersion: "2024-10-21"}, {Name: "dep-v1", Alias: "gpt-5", APIVersion: "v1"}, {Name: "dep-d", APIVersion: "v1", Default: true}}
	azure := Target{Provider: row(t, "azure-openai"), Credential: Credential{Fields: map[string]string{"azure_resource_name": "res"}, Deployments: deployments}}
	for model, want := range map[string]string{
		"gpt-4o": "gpt-4o", // the address names the deployment
		"dep-a":  "dep-a",
		"gpt-5":  "dep-v1",
		"dep-v1": "dep-v1",
		"other":  "dep-d",
	} {
		if got := azure.UpstreamModel(model); got != want {
			t.Errorf("%s: %s", model, got)
		}
	}
	bare := Target{Provider: azure.Provider, Credential: Credential{Fields: map[string]string{"azure_api_version": "v1", "azure_deployment_id": "only"}}}
	if got := bare.UpstreamModel("gpt-4o"); got != "only" {
		t.Errorf("azure_deployment_id: %s", got)
	}
	if got := (&Target{Provider: row(t, "azure-ai")}).UpstreamModel("m"); got != "m" {
		t.Errorf("foundry: %s", got)
	}
}

func TestImageAddresses(t *testing.T) {
	account := map[string]string{"workers_ai_account_id": "acc"}
	for _, c := range []struct {
		id, model string
		fields    map[string]string
		want      string
	}{
		{"stability-ai", "stable-diffusion-xl-1024-v1-0", nil, "https://api.stability.ai/v1/generation/stable-diffusion-xl-1024-v1-0/text-to-image"},
		{"stability-ai", "core", nil, "https://api.stability.ai/v2beta/stable-image/generate/core"},
		{"stability-ai", "stable-image-ultra", nil, "https://api.stability.ai/v2beta/stable-image/generate/ultra"},
		{"stability-ai", "sd3.5-large", nil, "https://api.stability.ai/v2beta/stable-image/generate/sd3"},
		{"fireworks-ai", "stable-diffusion-xl-1024-v1-0", nil, "https://api.fireworks.ai/inference/v1/image_generation/accounts/fireworks/models/stable-diffusion-xl-1024-v1-0"},
		{"fireworks-ai", "accounts/mine/models/sdxl", nil, "https://api.fireworks.ai/inference/v1/image_generation/accounts/mine/models/sdxl"},
		{"fireworks-ai", "flux-1-schnell-fp8", nil, "https://api.fireworks.ai/inference/v1/workflows/accounts/fireworks/models/flux-1-schnell-fp8/text_to_image"},
		{"siliconflow", "Kwai-Kolors/Kolors", nil, "https://api.siliconflow.cn/v1/images/generations"},
		{"hyperbolic", "SDXL1.0-base", nil, "https://api.hyperbolic.xyz/v1/image/generation"},
		{"segmind", "sdxl1.0-txt2img", nil, "https://api.segmind.com/v1/sdxl1.0-txt2img"},
		{"fal-ai", "fal-ai/flux/dev", nil, "https://fal.run/fal-ai/flux/dev"},
		{"workers-ai", "@cf/black-forest-labs/flux-1-schnell", account, "https://api.cloudflare.com/client/v4/accounts/acc/ai/run/@cf/black-forest-labs/flux-1-schnell"},
	} {
		target := Target{Provider: row(t, c.id), Credential: Credential{Fields: c.fields}}
		expectURL(t, Operation(c.id), c.want)(target.URL(ImagesGenerate, c.model, false))
		if _, err := target.URL(ImagesGenerate, "../"+c.model, false); err == nil && c.id != "siliconflow" && c.id != "hyperbolic" {
			t.Errorf("%s: a model that leaves its place is taken", c.id)
		}
	}
	chat := Target{Provider: row(t, "fireworks-ai")}
	expectURL(t, Chat, "https://api.fireworks.ai/inference/v1/chat/completions")(chat.URL(Chat, "flux-1-schnell-fp8", false))
}

// TestVertexCountsTokensOfClaudeOnly: the other publishers have no such address,
// and the body for it has the version that the service asks for.
func TestVertexCountsTokensOfClaudeOnly(t *testing.T) {
	vertex := Target{Provider: row(t, "vertex-ai"), Credential: Credential{Fields: map[string]string{"vertex_region": "us-central1", "vertex_project_id": "p1"}}}
	for model, want := range map[string]string{
		"anthropic.claude-sonnet-4-5": AnthropicMessages, "gemini-2.5-pro": "", "google.gemini-2.5-pro": "", "mistralai.mistral-medium-3": "", "meta.llama-4": "", "endpoints.123": "", "": "",
	} {
		if got := vertex.DialectOf(MessagesCountTokens, model); got != want {
			t.Errorf("%q: %q", model, got)
		}
		if d, op, ok := vertex.UpstreamDialect(MessagesCountTokens, AnthropicMessages, model); ok != (want != "") || ok && (d != want || op != MessagesCountTokens) {
			t.Errorf("%q: %q %q %v", model, d, op, ok)
		}
	}
	for field, want := range map[string]string{"": "vertex-2023-10-16", "2023-06-01": "vertex-2023-10-16", "vertex-2024-01-01": "vertex-2024-01-01"} {
		vertex.Credential.Fields["anthropic_version"] = field
		got, _ := vertex.Adapt(MessagesCountTokens, AnthropicMessages, "anthropic.claude-x", []byte(`{"model":"claude-x","messages":[]}`))
		if string(got) != `{"anthropic_version":"`+want+`","model":"claude-x","messages":[]}` && string(got) != `{"model":"claude-x","messages":[],"anthropic_version":"`+want+`"}` {
			t.Errorf("%q: %s", field, got)
		}
	}
	delete(vertex.Credential.Fields, "anthropic_version")
	own := `{"anthropic_version":"vertex-2024-02-02","model":"claude-x","messages":[]}`
	if got, _ := vertex.Adapt(MessagesCountTokens, AnthropicMessages, "anthropic.claude-x", []byte(own)); string(got) != own {
		t.Errorf("the caller's version: %s", got)
	}
}
