package provider

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

func TestCredentialFromHeaders(t *testing.T) {
	for _, c := range []struct {
		name, id string
		h        map[string]string
		key      string
		fields   map[string]string
	}{
		{"bearer", "openai", map[string]string{"Authorization": "Bearer sk-1", "x-gateway-openai-project": "p", "x-gateway-azure-resource-name": "no"}, "sk-1", map[string]string{"openai_project": "p"}},
		{"only Bearer is taken off", "fal-ai", map[string]string{"Authorization": "Key sk-1"}, "Key sk-1", nil},
		{"bearer in another case", "openai", map[string]string{"Authorization": "bearer sk-1"}, "sk-1", nil},
		{"own header of the provider", "anthropic", map[string]string{"x-api-key": "ak", "anthropic-beta": "b1"}, "ak", map[string]string{"anthropic_beta": "b1"}},
		{"Authorization before the own header", "anthropic", map[string]string{"Authorization": "Bearer a", "x-api-key": "b"}, "a", nil},
		{"prefixed before bare", "openai", map[string]string{"x-gateway-openai-beta": "x", "openai-beta": "y"}, "", map[string]string{"openai_beta": "x"}},
		{"other suffix", "azure-ai", map[string]string{"x-gateway-azure-extra-params": "pass"}, "", map[string]string{"azure_extra_parameters": "pass"}},
		{"aws", "bedrock", map[string]string{"x-gateway-aws-access-key-id": "AK", "x-gateway-aws-region": "eu-west-1", "x-gateway-aws-service": "no"}, "", map[string]string{"aws_access_key_id": "AK", "aws_region": "eu-west-1"}},
	} {
		h := http.Header{}
		for k, v := range c.h {
			h.Set(k, v)
		}
		got, err := CredentialFromHeaders(row(t, c.id), h)
		if err != nil || got.Key != c.key || cmp.Diff(c.fields, got.Fields) != "" {
			t.Errorf("%s: %+v %v", c.name, got, err)
		}
	}
	lists := http.Header{"Anthropic-Beta": {"a", "b,c"}}
	if got, err := CredentialFromHeaders(row(t, "anthropic"), lists); err != nil || got.Fields["anthropic_beta"] != "a,b,c" {
		t.Errorf("a list on two lines: %v %v", got.Fields, err)
	}
	twice := http.Header{"X-Gateway-Openai-Project": {"a", "b"}}
	if _, err := CredentialFromHeaders(row(t, "openai"), twice); fault.From(err).Status() != 400 || err == nil {
		t.Errorf("a header that comes twice: %v", err)
	}
}

func TestCredentialFromConfig(t *testing.T) {
	azure := CredentialFromConfig(row(t, "azure-openai"), "k", map[string]any{
		"resource_name": "res", "azure_api_version": "2024-10-21", "unknown": "x", "azure_model_name": nil,
		"custom_host": "https://h", "custom_headers": map[string]any{"X-A": "1"},
		"azure_deployment_config": []any{map[string]any{"azure_deployment_name": "d1", "alias": "gpt", "azure_api_version": "v1", "is_default": true, "azure_model_slug": "gpt-4o"}},
	})
	want := Credential{
		Key: "k", Fields: map[string]string{"azure_resource_name": "res", "azure_api_version": "2024-10-21"},
		Deployments: []Deployment{{Name: "d1", Alias: "gpt", APIVersion: "v1", Model: "gpt-4o", Default: true}},
		CustomHost:  "https://h", CustomHeaders: map[string]string{"X-A": "1"},
	}
	if diff := cmp.Diff(want, azure); diff != "" {
		t.Error(diff)
	}
	target := CredentialFromConfig(row(t, "azure-openai"), "", map[string]any{"deployments": []any{map[string]any{"deployment_id": "d2", "alias": "a", "api_version": "2"}}})
	if len(target.Deployments) != 1 || target.Deployments[0].Name != "d2" {
		t.Errorf("names of a config target: %+v", target)
	}
	vertex := CredentialFromConfig(row(t, "vertex-ai"), "", map[string]any{"vertex_service_account_json": map[string]any{"project_id": "p"}, "vertex_region": 5})
	if vertex.Fields["vertex_service_account_json"] != `{"project_id":"p"}` || vertex.Fields["vertex_region"] != "" {
		t.Errorf("%+v", vertex)
	}
	merged := Credential{Fields: map[string]string{"a": "1"}}.Or(Credential{Key: "k", Fields: map[string]string{"a": "2", "b": "3"}})
	if merged.Key != "k" || merged.Fields["a"] != "1" || merged.Fields["b"] != "3" {
		t.Errorf("Or: %+v", merged)
	}
}

func TestURLHeader(t *testing.T) {
	h := http.Header{}
	h.Set("x-gateway-azure-foundry-url", "https://x")
	if URLHeader(h) == "" || URLHeader(http.Header{"X-Gateway-Config": {"x"}}) != "" {
		t.Error("only headers that set an address count")
	}
}

func TestValidateConfigurations(t *testing.T) {
	azure := map[string]any{"azure_auth_mode": "default", "azure_resource_name": "res", "azure_deployment_config": []any{map[string]any{"azure_deployment_name": "d", "azure_api_version": "2024-10-21"}}}
	with := func(base map[string]any, k string, v any) map[string]any {
		out := map[string]any{k: v}
		for name, value := range base {
			if name != k {
				out[name] = value
			}
		}
		return out
	}
	for _, c := range []struct {
		name, id, key string
		cfg           map[string]any
		mapped        []string
		want          []string // fields at fault
	}{
		{"plain key", "openai", "k", nil, nil, nil},
		{"no key", "openai", "", nil, nil, []string{"key"}},
		{"key from a secret mapping", "openai", "", nil, []string{"key"}, nil},
		{"key with a line end", "openai", "a\nb", nil, nil, []string{"key"}},
		{"known fields", "openai", "k", map[string]any{"openai_project": "p", "custom_host": "https://h/v1", "custom_headers": map[string]any{"X-A": "1"}}, nil, nil},
		{"unknown field", "openai", "k", map[string]any{"aws_region": "x"}, nil, []string{"configurations.aws_region"}},
		{"wrong type", "openai", "k", map[string]any{"openai_project": 5.0}, nil, []string{"configurations.openai_project"}},
		{"bad host and headers", "openai", "k", map[string]any{"custom_host": "ftp://x", "custom_headers": map[string]any{"Host": "x"}}, nil, []string{"configurations.custom_headers.Host", "configurations.custom_host"}},
		{"headers of other types", "openai", "k", map[string]any{"custom_headers": map[string]any{"X": 1.0}}, nil, []string{"configurations.custom_headers.X"}},
		{"azure", "azure-openai", "k", azure, nil, nil},
		{"azure nothing given", "azure-openai", "", nil, nil, []string{"configurations.azure_auth_mode", "configurations.azure_deployment_config", "configurations.azure_resource_name", "key"}},
		{"azure no deployment", "azure-openai", "k", with(azure, "azure_deployment_config", []any{}), nil, []string{"configurations.azure_deployment_config", "configurations.azure_deployment_config"}},
		{"azure deployment without a name", "azure-openai", "k", with(azure, "azure_deployment_config", []any{map[string]any{}}), nil, []string{"configurations.azure_deployment_config[0].azure_deployment_name"}},
		{"azure bad mode", "azure-openai", "k", with(azure, "azure_auth_mode", "magic"), nil, []string{"configurations.azure_auth_mode"}},
		{"azure entra", "azure-openai", "", with(azure, "azure_auth_mode", "entra"), nil, []string{"configurations.azure_entra_client_id", "configurations.azure_entra_client_secret", "configurations.azure_entra_tenant_id"}},
		{"azure entra with a mapped secret", "azure-openai", "", with(with(with(azure, "azure_auth_mode", "entra"), "azure_entra_client_id", "c"), "azure_entra_tenant_id", "t"), []string{"configurations.azure_entra_client_secret"}, nil},
		{"azure managed needs no key", "azure-openai", "", with(azure, "azure_auth_mode", "managed"), nil, nil},
		{"bad resource", "azure-openai", "k", with(azure, "azure_resource_name", "a/b"), nil, []string{"configurations.azure_resource_name"}},
		{"bedrock keys", "bedrock", "", map[string]any{"aws_auth_type": "accessKey", "aws_region": "us-east-1"}, nil, []string{"configurations.aws_access_key_id", "configurations.aws_secret_access_key"}},
		{"bedrock role", "bedrock", "", map[string]any{"aws_auth_type": "assumedRole", "aws_region": "us-east-1", "aws_role_arn": "arn:aws:iam::1:role/x"}, nil, nil},
		{"bedrock api key", "bedrock", "", map[string]any{"aws_auth_type": "apiKey", "aws_region": "us-east-1"}, nil, []string{"key"}},
		{"vertex account", "vertex-ai", "", map[string]any{"vertex_auth_type": "serviceAccount", "vertex_region": "global", "vertex_service_account_json": map[string]any{"project_id": "p"}}, nil, nil},
		{"vertex account not JSON", "vertex-ai", "", map[string]any{"vertex_auth_type": "serviceAccount", "vertex_region": "global", "vertex_service_account_json": "{"}, nil, []string{"configurations.vertex_service_account_json"}},
		{"vertex basic", "vertex-ai", "", map[string]any{"vertex_auth_type": "basic", "vertex_region": "us-east5"}, nil, []string{"configurations.vertex_project_id", "key"}},
		{"vertex workload", "vertex-ai", "", map[string]any{"vertex_auth_type": "workload", "vertex_region": "us-east5", "vertex_project_id": "p", "vertex_skip_ptu_cost_attribution": true}, nil, nil},
		{"workers-ai", "workers-ai", "k", nil, nil, []string{"configurations.workers_ai_account_id"}},
		{"own host only", "ollama", "", nil, nil, []string{"configurations.custom_host"}},
		{"own host", "ollama", "", map[string]any{"custom_host": "http://localhost:11434"}, nil, nil},
		{"anthropic flag", "anthropic", "k", map[string]any{"anthropic_inspect_stream_for_overloaded_error": true}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, d := range row(t, c.id).ValidateConfigurations(c.key, c.cfg, c.mapped...) {
				got = append(got, d.Field)
				if d.Message == "" || strings.Contains(d.Message, "magic") {
					t.Errorf("message %q", d.Message)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := row(t, "azure-openai").SecretFields(); !slices.Equal(got, []string{"azure_ad_token", "azure_entra_client_secret"}) {
		t.Errorf("secret fields: %q", got)
	}
}

func TestTraits(t *testing.T) {
	openai := row(t, "openai")
	if got := openai.Traits("gpt-4o"); got.SystemRole != "" || got.MaxTokensField != "" || !got.NoEffort || got.NoStreamUsage {
		t.Errorf("gpt-4o: %+v", got)
	}
	if got := openai.Traits("o3-mini"); got.SystemRole != "developer" || got.MaxTokensField != "max_completion_tokens" || got.Sampling != chat.SamplingNone || got.NoEffort {
		t.Errorf("o3-mini: %+v", got)
	}
	if got := row(t, "mistral-ai").Traits("m"); got.SystemRole != "system" || got.MaxTokensField != "max_tokens" || !got.NoStreamUsage || !got.NoUnknown {
		t.Errorf("mistral: %+v", got)
	}
	if got := row(t, "cerebras").Traits("m"); !got.NoParallelTools {
		t.Errorf("cerebras: %+v", got)
	}
	for model, want := range map[string]int64{"claude-3-haiku-20240307": 4096, "claude-3-5-sonnet-latest": 8192, "us.anthropic.claude-opus-4-1-20250805-v1:0": 32000, "claude-opus-4-20250514": 32000, "claude-opus-4-6": 128000, "claude-next": 128000} {
		if got := row(t, "anthropic").Traits(model); got.DefaultMaxTokens != want {
			t.Errorf("%s: %+v", model, got)
		}
	}
}

func TestAdapt(t *testing.T) {
	for _, c := range []struct {
		name, id, body, want string
		dropped              []string
	}{
		{"openai stays", "openai", `{"messages":[{"role":"developer"}],"max_completion_tokens":5}`, "", nil},
		{"nothing to do", "groq", `{"messages":[{"role":"user","content":"developer\""}]}`, "", nil},
		{"developer becomes system", "x-ai", `{ "messages":[{"content":"developer","role":"developer"},{"role":"user"}]}`, `{ "messages":[{"content":"developer","role":"system"},{"role":"user"}]}`, nil},
		{"bound renamed", "deepseek", `{"max_completion_tokens": 5,"n":1}`, `{"max_tokens":5,"n":1}`, nil},
		{"bound renamed over the other", "deepseek", `{"max_tokens":1,"max_completion_tokens":5}`, `{"max_tokens":5}`, nil},
		{"null bound is absent", "deepseek", `{"max_tokens":1,"max_completion_tokens":null}`, `{"max_tokens":1}`, nil},
		{"mistral", "mistral-ai", `{"seed":7,"tool_choice":"required","user":"u","stream_options":null}`, `{"random_seed":7,"tool_choice":"any"}`, []string{"user"}},
		{"dropped", "cerebras", `{"logit_bias":{"1":2},"x":1,"service_tier":"auto"}`, `{"x":1}`, []string{"logit_bias", "service_tier"}},
		{"other dialect stays", "anthropic", `{"max_completion_tokens":5}`, "", nil},
	} {
		got, dropped := row(t, c.id).Adapt([]byte(c.body))
		want := c.want
		if want == "" {
			want = c.body
		}
		if string(got) != want || !slices.Equal(dropped, c.dropped) {
			t.Errorf("%s: got %s %q, want %s %q", c.name, got, dropped, want, c.dropped)
		}
	}
}
