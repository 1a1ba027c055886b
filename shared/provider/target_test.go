package provider

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/fault"
)

func row(t testing.TB, id string) *Provider {
	t.Helper()
	p, ok := ByID(id)
	if !ok {
		t.Fatalf("no provider %s", id)
	}
	return p
}

func TestAddressesThatDependOnFieldsAndModel(t *testing.T) {
	deployments := []Deployment{{Name: "dep-a", Alias: "gpt-4o"}, {Name: "dep-b", APIVersion: "v1", Default: true}}
	for _, c := range []struct {
		name, id string
		fields   map[string]string
		deploy   []Deployment
		op       Operation
		model    string
		stream   bool
		want     string
	}{
		{"azure deployment by alias", "azure-openai", map[string]string{"azure_resource_name": "res", "azure_api_version": "2024-06-01"}, deployments, Chat, "gpt-4o", false, "https://res.openai.azure.com/openai/deployments/dep-a/chat/completions?api-version=2024-06-01"},
		{"azure default deployment in the v1 style", "azure-openai", map[string]string{"azure_resource_name": "res"}, deployments, Chat, "other", false, "https://res.openai.azure.com/openai/v1/chat/completions"},
		{"azure without a deployment uses the model", "azure-openai", map[string]string{"azure_resource_name": "res"}, nil, Embeddings, "emb", false, "https://res.openai.azure.com/openai/deployments/emb/embeddings?api-version=2024-10-21"},
		{"azure files", "azure-openai", map[string]string{"azure_resource_name": "res", "azure_api_version": "v1"}, nil, FilesList, "", false, "https://res.openai.azure.com/openai/v1/files"},
		{"foundry with an Anthropic model", "azure-ai", map[string]string{"azure_foundry_url": "https://x.services.ai.azure.com/anthropic"}, nil, Chat, "claude", false, "https://x.services.ai.azure.com/anthropic/v1/messages"},
		{"google", "google", nil, nil, Chat, "models/gemini-2.5-pro", false, "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent"},
		{"vertex gemini", "vertex-ai", map[string]string{"vertex_region": "us-central1", "vertex_project_id": "p1"}, nil, Chat, "gemini-2.5-pro", true, "https://us-central1-aiplatform.googleapis.com/v1/projects/p1/locations/us-central1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse"},
		{"vertex global claude", "vertex-ai", map[string]string{"vertex_region": "global", "vertex_service_account_json": `{"project_id":"acc"}`, "vertex_project_id": "p1"}, nil, Chat, "anthropic.claude-sonnet-4-5@20250929", true, "https://aiplatform.googleapis.com/v1/projects/acc/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict"},
		{"vertex count tokens", "vertex-ai", map[string]string{"vertex_region": "eu", "vertex_project_id": "p1"}, nil, MessagesCountTokens, "anthropic.claude-x", false, "https://aiplatform.eu.rep.googleapis.com/v1/projects/p1/locations/eu/publishers/anthropic/models/count-tokens:rawPredict"},
		{"vertex llama", "vertex-ai", map[string]string{"vertex_region": "us-east5", "vertex_project_id": "p1"}, nil, Chat, "meta.llama-4", false, "https://us-east5-aiplatform.googleapis.com/v1beta1/projects/p1/locations/us-east5/endpoints/openapi/chat/completions"},
		{"vertex own endpoint", "vertex-ai", map[string]string{"vertex_region": "us-east5", "vertex_project_id": "p1"}, nil, Chat, "endpoints.123", false, "https://us-east5-aiplatform.googleapis.com/v1/projects/p1/locations/us-east5/endpoints/123/chat/completions"},
		{"bedrock Command", "bedrock", nil, nil, Chat, "cohere.command-text-v14", false, "https://bedrock-runtime.us-east-1.amazonaws.com/model/cohere.command-text-v14/invoke"},
		{"bedrock Command, streamed", "bedrock", nil, nil, Chat, "cohere.command-light-text-v14", true, "https://bedrock-runtime.us-east-1.amazonaws.com/model/cohere.command-light-text-v14/invoke-with-response-stream"},
		{"bedrock Jurassic, streamed", "bedrock", nil, nil, Chat, "arn:aws:bedrock:us-east-1::foundation-model/ai21.j2-ultra-v1", true, "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A%3Afoundation-model%2Fai21.j2-ultra-v1/invoke"},
		{"bedrock ARN", "bedrock", nil, nil, Chat, "arn:aws:bedrock:us-east-1:1:inference-profile/us.x", false, "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/converse"},
		{"hugging face own endpoint", "huggingface", map[string]string{"huggingface_base_url": "https://x.endpoints.huggingface.cloud/"}, nil, Chat, "m", false, "https://x.endpoints.huggingface.cloud/v1/chat/completions"},
		{"hugging face own endpoint with version", "huggingface", map[string]string{"huggingface_base_url": "https://x.example.com/v1"}, nil, Chat, "m", false, "https://x.example.com/v1/chat/completions"},
		{"byteplus region", "byteplus", map[string]string{"byteplus_region": "eu-west-1"}, nil, Chat, "m", false, "https://ark.eu-west.bytepluses.com/api/v3/chat/completions"},
		{"predibase adapter", "predibase", map[string]string{"predibase_tenant_id": "t1"}, nil, Chat, "base:adapter", false, "https://serving.app.predibase.com/t1/deployments/v2/llms/base/v1/chat/completions"},
		{"stability version 1", "stability-ai", nil, nil, ImagesGenerate, "stable-diffusion-v1-6", false, "https://api.stability.ai/v1/generation/stable-diffusion-v1-6/text-to-image"},
		{"databricks", "databricks", map[string]string{"databricks_workspace": "dbc-1"}, nil, Chat, "m", false, "https://dbc-1.cloud.databricks.com/serving-endpoints/chat/completions"},
		{"model with slashes", "workers-ai", map[string]string{"workers_ai_account_id": "acc"}, nil, ImagesGenerate, "@cf/maker/m 1", false, "https://api.cloudflare.com/client/v4/accounts/acc/ai/run/@cf/maker/m%201"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := Target{Provider: row(t, c.id), Credential: Credential{Fields: c.fields, Deployments: c.deploy}}
			got, err := target.URL(c.op, c.model, c.stream)
			if err != nil || got != c.want {
				t.Errorf("got %s %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestUpstreamModelAndDialect(t *testing.T) {
	azure := Target{Provider: row(t, "azure-openai"), Credential: Credential{Deployments: []Deployment{{Name: "dep", Alias: "gpt-4o", APIVersion: "v1"}}}}
	if got := azure.UpstreamModel("gpt-4o"); got != "dep" {
		t.Errorf("azure v1: %s", got)
	}
	vertex := Target{Provider: row(t, "vertex-ai")}
	for model, want := range map[string][2]string{"gemini-x": {"gemini-x", Gemini}, "anthropic.claude": {"claude", AnthropicMessages}, "meta.llama": {"meta/llama", OpenAIChat}} {
		if m, d := vertex.UpstreamModel(model), vertex.DialectOf(Chat, model); m != want[0] || d != want[1] {
			t.Errorf("%s: %s %s", model, m, d)
		}
	}
	foundry := Target{Provider: row(t, "azure-ai"), Credential: Credential{Key: "k", Fields: map[string]string{"azure_foundry_url": "https://x/anthropic"}}}
	if d, op, ok := foundry.UpstreamDialect(Chat, OpenAIChat, "m"); d != AnthropicMessages || op != Chat || !ok {
		t.Errorf("foundry: %s %s %v", d, op, ok)
	}
}

func TestSpeaks(t *testing.T) {
	for _, c := range []struct {
		id     string
		op     Operation
		client string
		want   string
		up     Operation
		ok     bool
	}{
		{"openai", Chat, OpenAIChat, OpenAIChat, Chat, true},
		{"openai", Completions, OpenAICompletions, OpenAICompletions, Completions, true},
		{"openai", Messages, AnthropicMessages, OpenAIChat, Chat, true},
		{"openai", ResponsesCreate, OpenAIResponses, OpenAIResponses, ResponsesCreate, true},
		{"groq", Completions, OpenAICompletions, OpenAIChat, Chat, true},
		{"anthropic", Chat, OpenAIChat, AnthropicMessages, Chat, true},
		{"anthropic", Messages, AnthropicMessages, AnthropicMessages, Messages, true},
		{"anthropic", Completions, OpenAICompletions, AnthropicMessages, Chat, true},
		{"databricks", Messages, AnthropicMessages, AnthropicMessages, Messages, true},
		{"google", ResponsesCreate, OpenAIResponses, Gemini, Chat, true},
		{"jina", Chat, OpenAIChat, "", "", false},
		{"anthropic", MessagesCountTokens, AnthropicMessages, AnthropicMessages, MessagesCountTokens, true},
		{"openai", MessagesCountTokens, AnthropicMessages, "", "", false},
	} {
		d, up, ok := row(t, c.id).UpstreamDialect(c.op, c.client)
		if d != c.want || up != c.up || ok != c.ok {
			t.Errorf("%s %s for %s: %q %q %v", c.id, c.op, c.client, d, up, ok)
		}
	}
}

func TestAddressesRefuseValuesThatCouldLeaveTheirPlace(t *testing.T) {
	for _, c := range []struct {
		id, field, value, model string
		op                      Operation
	}{
		{"azure-openai", "azure_resource_name", "evil.com/", "m", Chat},
		{"azure-openai", "azure_resource_name", "a.b", "m", Chat},
		{"azure-openai", "azure_resource_name", "-a", "m", Chat},
		{"azure-openai", "azure_resource_name", "a@b", "m", Chat},
		{"azure-openai", "azure_resource_name", "", "m", Chat},
		{"bedrock", "aws_region", "us-east-1.evil.com#", "m", Chat},
		{"vertex-ai", "vertex_region", "x/../y", "m", Chat},
		{"vertex-ai", "vertex_project_id", "p/../../q", "m", Chat},
		{"workers-ai", "workers_ai_account_id", "..", "m", Completions},
		{"cortex", "snowflake_account", "a/b", "m", Chat},
		{"cortex", "snowflake_account", "a..b", "m", Chat},
		{"databricks", "databricks_workspace", "evil.com?x=", "m", Chat},
		{"byteplus", "byteplus_region", "evil.com/x-1", "m", Chat},
		{"azure-ai", "azure_foundry_url", "https://user:pw@host", "m", Chat},
		{"azure-ai", "azure_foundry_url", "file:///etc", "m", Chat},
		{"predibase", "predibase_tenant_id", "a/b", "m", Chat},
		{"oracle", "oracle_region", "x.evil.com", "m", Chat},
		{"fireworks-ai", "fireworks_account_id", "../x", "m", FilesList},
		{"google", "", "", "../../files", Chat},
		{"google", "", "", "a//b", Chat},
		{"google", "", "", "", Chat},
		{"google", "", "", "a\r\nHost: x", Chat},
	} {
		fields := sample(row(t, c.id)).Fields
		delete(fields, "vertex_service_account_json")
		if c.field != "" {
			fields[c.field] = c.value
		}
		target := Target{Provider: row(t, c.id), Credential: Credential{Fields: fields}}
		got, err := target.URL(c.op, c.model, false)
		f := fault.From(err)
		if err == nil || f.Status() != 400 {
			t.Errorf("%s %s=%q model %q: got %s %v", c.id, c.field, c.value, c.model, got, err)
			continue
		}
		if want := c.field; want != "" && f.Field != want {
			t.Errorf("%s %s=%q: the fault names %q", c.id, c.field, c.value, f.Field)
		}
	}
	if _, err := (&Target{Provider: row(t, "jina")}).URL(Chat, "m", false); !fault.Is(err, fault.UnsupportedOperation) {
		t.Errorf("an operation that the provider lacks: %v", err)
	}
	if _, err := (&Target{Provider: row(t, "ollama")}).URL(Chat, "m", false); fault.From(err).Field != "custom_host" {
		t.Errorf("a provider without an address: %v", err)
	}
}

func TestCustomHostReplacesTheBase(t *testing.T) {
	for _, c := range []struct{ id, host, want string }{
		{"openai", "https://h.example.com/v1/", "https://h.example.com/v1/chat/completions"},
		{"together-ai", "https://h.example.com", "https://h.example.com/v1/chat/completions"},
		{"together-ai", "https://h.example.com/v1", "https://h.example.com/v1/chat/completions"},
		{"ollama", "http://localhost:11434", "http://localhost:11434/v1/chat/completions"},
		{"anthropic", "https://h.example.com/v1", "https://h.example.com/v1/messages"},
	} {
		saved := Target{Provider: row(t, c.id), Credential: Credential{CustomHost: c.host}}
		target := Target{Provider: row(t, c.id), CustomHost: c.host, Credential: Credential{CustomHost: "https://other"}}
		for _, target := range []Target{saved, target} {
			if got, err := target.URL(Chat, "m", false); err != nil || got != c.want {
				t.Errorf("%s at %s: %s %v", c.id, c.host, got, err)
			}
			if host, field := target.OwnHost(); host != c.host || field != "custom_host" {
				t.Errorf("OwnHost: %s %s", host, field)
			}
		}
	}
	foundry := Target{Provider: row(t, "azure-ai"), Credential: Credential{Fields: map[string]string{"azure_foundry_url": "https://x.example.com"}}}
	if host, field := foundry.OwnHost(); host != "https://x.example.com" || field != "azure_foundry_url" {
		t.Errorf("OwnHost of a foundry URL: %s %s", host, field)
	}
	if host, _ := (&Target{Provider: row(t, "openai")}).OwnHost(); host != "" {
		t.Errorf("OwnHost of the catalog's address: %s", host)
	}
}

func TestPassthroughIsByteExact(t *testing.T) {
	for _, c := range []struct{ id, path, query, want string }{
		{"openai", "/a//b;c=1/%2F%2e%2E/ž%c5%be", "x=1&x=%20;y", "https://api.openai.com/v1/a//b;c=1/%2F%2e%2E/ž%c5%be?x=1&x=%20;y"},
		{"openai", "//double", "", "https://api.openai.com/v1//double"},
		{"anthropic", "/v1/messages", "", "https://api.anthropic.com/v1/messages"},
		{"anthropic", "/messages", "", "https://api.anthropic.com/v1/messages"},
		{"meshy", "/text-to-3d/1", "", "https://api.meshy.ai/openapi/v2/text-to-3d/1"},
		{"meshy", "/image-to-3d", "", "https://api.meshy.ai/openapi/v1/image-to-3d"},
		{"sagemaker", "/endpoints/e/invocations", "", "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/e/invocations"},
		{"azure-openai", "/res.openai.azure.com/openai/x//y", "a=1", "https://res.openai.azure.com/openai/x//y?a=1"},
		{"azure-openai", "/https://RES.openai.azure.com/openai/x", "", "https://res.openai.azure.com/openai/x"},
		{"azure-openai", "/threads/x.openai.azure.com", "", "https://res.openai.azure.com/openai/threads/x.openai.azure.com"},
		{"vertex-ai", "/v1/projects/p/x", "", "https://aiplatform.googleapis.com/v1/projects/p/x"},
	} {
		target := Target{Provider: row(t, c.id), Credential: Credential{Fields: map[string]string{"azure_resource_name": "res", "vertex_region": "global"}}}
		got, err := target.PassthroughURL(c.path, c.query)
		if err != nil || got != c.want {
			t.Errorf("%s %s: got %s %v, want %s", c.id, c.path, got, err, c.want)
			continue
		}
		u, err := ExactURL(got)
		if err != nil {
			t.Errorf("ExactURL(%s): %v", got, err)
			continue
		}
		if sent := u.Scheme + "://" + u.Host + u.RequestURI(); sent != got {
			t.Errorf("sent as %s, want %s", sent, got)
		}
	}
	azure := Target{Provider: row(t, "azure-openai"), Credential: Credential{Fields: map[string]string{"azure_resource_name": "res"}}}
	if _, err := azure.PassthroughURL("/other.openai.azure.com/x", ""); !fault.Is(err, fault.BlockedHost) {
		t.Errorf("a stored credential must stay with its resource: %v", err)
	}
	azure.CallerKey = true
	if got, err := azure.PassthroughURL("/other.openai.azure.com/x", ""); err != nil || got != "https://other.openai.azure.com/x" {
		t.Errorf("a caller's own credential may go to its resource: %s %v", got, err)
	}
	if _, err := azure.PassthroughURL("/evil.com%2f.openai.azure.com/x", ""); err == nil {
		t.Error("only a plain label may stand before the domain")
	}
}

func TestExactURLRefusesWhatCannotBeSent(t *testing.T) {
	for _, raw := range []string{"nothing", "https:///x", "https://h/a b", "https://h/a\nb", "https://h/a#b", "https://h:x/"} {
		if u, err := ExactURL(raw); err == nil {
			t.Errorf("%q gives %v", raw, u)
		}
	}
	u, err := ExactURL("https://h.example.com//a//b?")
	if err != nil || u.Host != "h.example.com" || !strings.HasSuffix(u.RequestURI(), "//a//b?") {
		t.Errorf("%v %v", u, err)
	}
	if u, err := ExactURL("https://h.example.com"); err != nil || u.RequestURI() != "/" {
		t.Errorf("%v %v", u, err)
	}
}

func TestAuthorize(t *testing.T) {
	for _, c := range []struct {
		name, id string
		cred     Credential
		custom   map[string]string
		sent     http.Header
		want     map[string]string
	}{
		{"bearer over the caller's header", "openai", Credential{Key: "k"}, nil, http.Header{"Authorization": {"Bearer other"}}, map[string]string{"Authorization": "Bearer k"}},
		{"own header", "anthropic", Credential{Key: "k"}, nil, nil, map[string]string{"X-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Authorization": "", "Anthropic-Beta": ""}},
		{"the caller's version stays", "anthropic", Credential{Key: "k"}, nil, http.Header{"Anthropic-Version": {"2024-01-01"}}, map[string]string{"Anthropic-Version": "2024-01-01"}},
		{"the credential's version wins", "anthropic", Credential{Key: "k", Fields: map[string]string{"anthropic_version": "2025-01-01"}}, nil, http.Header{"Anthropic-Version": {"2024-01-01"}}, map[string]string{"Anthropic-Version": "2025-01-01"}},
		{"azure key", "azure-openai", Credential{Key: "k"}, nil, nil, map[string]string{"Api-Key": "k", "Authorization": ""}},
		{"azure token", "azure-openai", Credential{Key: "k", Fields: map[string]string{"azure_ad_token": "tok", "azure_auth_mode": "entra"}}, nil, nil, map[string]string{"Authorization": "Bearer tok", "Api-Key": ""}},
		{"foundry Anthropic", "azure-ai", Credential{Key: "k", Fields: map[string]string{"azure_foundry_url": "https://x/anthropic"}}, nil, nil, map[string]string{"X-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Authorization": ""}},
		{"bedrock key", "bedrock", Credential{Key: "k", Fields: map[string]string{"aws_auth_type": "apiKey"}}, nil, nil, map[string]string{"Authorization": "Bearer k"}},
		{"custom headers", "openai", Credential{Key: "k", CustomHeaders: map[string]string{"X-A": "1", "X-B": "1"}}, map[string]string{"x-b": "2", "authorization": "no"}, nil, map[string]string{"X-A": "1", "X-B": "2", "Authorization": "Bearer k"}},
		{"no key needed", "ollama", Credential{}, nil, nil, map[string]string{"Authorization": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.sent == nil {
				c.sent = http.Header{}
			}
			u, err := ExactURL("https://h.example.com/x")
			if err != nil {
				t.Fatal(err)
			}
			req := &http.Request{Method: http.MethodPost, URL: u, Header: c.sent}
			target := Target{Provider: row(t, c.id), Credential: c.cred, CustomHeaders: c.custom}
			if err := target.Authorize(context.Background(), req, nil); err != nil {
				t.Fatal(err)
			}
			for name, want := range c.want {
				if got := req.Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestAuthorizeReportsMissingFields(t *testing.T) {
	for _, c := range []struct {
		id    string
		cred  Credential
		field string
	}{
		{"openai", Credential{}, "api_key"},
		{"openai", Credential{Key: "a\r\nb"}, "api_key"},
		{"palm", Credential{}, "api_key"},
		{"bedrock", Credential{Fields: map[string]string{"aws_access_key_id": "a"}}, "aws_secret_access_key"},
		{"vertex-ai", Credential{}, "api_key"},
		{"azure-openai", Credential{Fields: map[string]string{"azure_auth_mode": "entra"}}, "azure_entra_client_secret"},
		{"oracle", Credential{}, "oracle_tenancy"},
		{"openai", Credential{Key: "k", Fields: map[string]string{"openai_project": "a\nb"}}, "OpenAI-Project"},
		{"openai", Credential{Key: "k", CustomHeaders: map[string]string{"a b": "x"}}, "custom_headers"},
	} {
		req := &http.Request{Method: http.MethodPost, Header: http.Header{}}
		err := (&Target{Provider: row(t, c.id), Credential: c.cred}).Authorize(context.Background(), req, nil)
		if f := fault.From(err); err == nil || f.Status() != 400 || f.Field != c.field {
			t.Errorf("%s: %v", c.id, err)
		}
	}
}
