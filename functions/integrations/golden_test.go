package integrations

import (
	"flag"
	"testing"

	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestResponsesRetainTheirFormat(t *testing.T) {
	h := newInstallation(t)
	h.Golden(*update, "answers.txt",
		admintest.As(chief, "POST", "/integrations", `{"name":"Shared","ai_provider_id":"bedrock","description":"d","tags":{"team":"a"},"pricing_adjustments":{"multiplier":{"default":0.9}},
			"configurations":{"aws_auth_type":"accessKey","aws_region":"eu-west-1","aws_access_key_id":"AKID","aws_secret_access_key":"CANARY-0123456789","custom_headers":{"X-Team":"CANARY-0123456789"}}}`),
		admintest.As(chief, "PUT", "/integrations/shared/workspaces", `{"workspaces":[{"id":"`+admintest.OneSlug+`","enabled":true,"usage_limits":[{"credit_limit":5,"alert_threshold":4}],"rate_limits":[{"type":"requests","unit":"rpm","value":9}]}],"global_workspace_access":{"enabled":false,"usage_limits":[{"type":"tokens","credit_limit":1000}]}}`),
		admintest.As(chief, "GET", "/integrations/shared", ""),
		admintest.As(chief, "GET", "/integrations", ""),
		admintest.As(chief, "GET", "/integrations/shared/workspaces", ""),
		admintest.As(key, "POST", "/integrations", `{"name":"Own","ai_provider_id":"ollama","configurations":{"custom_host":"https://models.example.com/v1"}}`),
		admintest.As(key, "PUT", "/integrations/own/models", `{"allow_all_models":false,"models":[{"slug":"mine","enabled":true,"pricing_config":{"pay_as_you_go":{"request_token":{"price":0.1}}}}]}`),
		admintest.As(key, "GET", "/integrations/own/models", ""),
		admintest.As(key, "GET", "/integrations/own", ""),
		admintest.As(key, "DELETE", "/integrations/own", ""),
	)
}
