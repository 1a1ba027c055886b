package main

import (
	"fmt"
	"strings"
	"testing"
)

const (
	bedrockClaude = "anthropic.claude-sonnet-4-5-20250929-v1:0"
)

// bedrock makes saved providers of Bedrock in front of the mock: @bedrock with
// access keys, and others for the cases of a test.
func (r *running) bedrock(slug, fields string) {
	r.t.Helper()
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,"ai_provider_id":"bedrock",%s,"aws_region":"us-east-1"}}`, slug, slug, r.workspace(),
		strings.Replace(fields, `"configurations":{`, fmt.Sprintf(`"configurations":{"custom_host":%q,`, host), 1)))
}

const bedrockKeys = `"configurations":{"aws_auth_type":"accessKey","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret"`

// In a row: it sets the environment.
func TestBedrockCredentials(t *testing.T) {
	r := start(t)
	t.Setenv("AWS_ENDPOINT_URL_STS", strings.TrimSuffix(r.mockBase(), "/v1")+"/sts")
	role := `"configurations":{"aws_auth_type":"assumedRole","aws_role_arn":"arn:aws:iam::123456789012:role/`
	r.bedrock("wrong", strings.Replace(bedrockKeys, "mock-secret", "another-secret", 1))
	r.bedrock("bearer", `"key":"mock-bedrock","configurations":{"aws_auth_type":"apiKey"`)
	r.bedrock("role", role+`external","aws_external_id":"mock"`)
	r.bedrock("stranger", role+`external","aws_external_id":"another"`)
	r.bedrock("service", `"configurations":{"aws_auth_type":"serviceRole"`)
	t.Setenv("AWS_ASSUME_ROLE_ACCESS_KEY_ID", "AKIDMOCK")
	t.Setenv("AWS_ASSUME_ROLE_SECRET_ACCESS_KEY", "mock-secret")
	for _, c := range []struct {
		slug   string
		status int
	}{{"wrong", 403}, {"bearer", 200}, {"role", 200}, {"stranger", 401}, {"service", 400}} {
		got := r.call("POST", "/chat/completions", chatBody("@"+c.slug+"/"+bedrockClaude, "Hello", ""))
		if got.status != c.status || strings.Contains(got.body, "another-secret") {
			t.Errorf("%s: %d %s", c.slug, got.status, got.body)
		}
	}
	// The caller's own keys, for a host of the caller's.
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	own := []string{"X-Gateway-Provider", "bedrock", "X-Gateway-Custom-Host", host, "X-Gateway-Aws-Access-Key-Id", "AKIDMOCK", "X-Gateway-Aws-Secret-Access-Key", "mock-secret", "X-Gateway-Aws-Region", "eu-west-3"}
	if got := r.call("POST", "/chat/completions", chatBody(bedrockClaude, "Hello", ""), own...); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	// A caller cannot have the gateway assume a role for him.
	if got := r.call("POST", "/chat/completions", chatBody(bedrockClaude, "Hello", ""), "X-Gateway-Provider", "bedrock", "X-Gateway-Custom-Host", host,
		"X-Gateway-Aws-Auth-Type", "assumedRole", "X-Gateway-Aws-Role-Arn", "arn:aws:iam::123456789012:role/x"); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
