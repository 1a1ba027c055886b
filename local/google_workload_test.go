package main

import (
	"fmt"
	"strings"
	"testing"

	"gateway/local/mockprovider"
)

// TestVertexByAnIdentityOfAnotherCloud asks Gemini on Vertex AI with AWS keys, a role
// that they assume and a token of an identity provider, as the pool of the project
// allows. In a row: it sets the environment.
func TestVertexByAnIdentityOfAnotherCloud(t *testing.T) {
	r := start(t)
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	t.Setenv("GATEWAY_GOOGLE_STS_URL", host+"/google-sts")
	t.Setenv("GATEWAY_GOOGLE_IAM_URL", host+"/google-iam")
	t.Setenv("AWS_ENDPOINT_URL_STS", host+"/sts")
	t.Setenv("AWS_REGION", "eu-west-1")
	save := func(slug, fields string) {
		t.Helper()
		r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,"ai_provider_id":"vertex-ai","configurations":{"vertex_auth_type":"workload","vertex_region":"us-central1","vertex_project_id":"proj","custom_host":%q,%s}}`, slug, slug, r.workspace(), host, fields))
	}
	const keys = `"aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret"`
	pool := `"vertex_workload_audience":"` + mockprovider.FederatedPool + `"`
	account := `"vertex_workload_service_account":"vertex@proj.iam.gserviceaccount.com"`
	external := `"vertex_service_account_json":{"type":"external_account","audience":"` + strings.TrimSuffix(mockprovider.FederatedPool, "aws") + `oidc","subject_token_type":"urn:ietf:params:oauth:token-type:jwt",` +
		`"token_url":"https://sts.googleapis.com/v1/token","service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/vertex@proj.iam.gserviceaccount.com:generateAccessToken",` +
		`"credential_source":{"url":"` + host + `/google-idp/token","format":{"type":"json","subject_token_field_name":"value"}}}`
	save("keys", pool+","+account+","+keys)
	save("role", pool+","+account+","+keys+`,"aws_role_arn":"arn:aws:iam::123456789012:role/vertex"`)
	save("provider", external)
	save("wrong-keys", pool+","+account+","+strings.Replace(keys, "mock-secret", "other", 1))
	save("denied", pool+","+keys+`,"vertex_workload_service_account":"denied@proj.iam.gserviceaccount.com"`)
	save("unlent", pool)
	for slug, status := range map[string]int{"keys": 200, "role": 200, "provider": 200, "wrong-keys": 401, "denied": 401, "unlent": 400} {
		for range 2 {
			got := r.call("POST", "/chat/completions", chatBody("@"+slug+"/gemini-2.5-flash", "mock: say=Hello there\nHi", ""))
			if got.status != status || status == 200 != strings.Contains(got.body, "Hello there") {
				t.Errorf("%s: %d %s", slug, got.status, got.body)
			}
			if strings.Contains(got.body, "other") || strings.Contains(got.body, "mock-secret") {
				t.Errorf("%s tells a secret: %s", slug, got.body)
			}
		}
	}
	requests := 0
	for _, req := range r.mock.Requests(100) {
		if strings.HasPrefix(req.Path, "/google-sts/") {
			requests++
		}
	}
	if requests != 3+2+2 { // one for each good identity; what was rejected is asked for again
		t.Errorf("%d tokens were asked for", requests)
	}
	if got := r.call("GET", "/integrations/keys", "", "X-Gateway-Api-Key", adminKey); strings.Contains(got.body, "mock-secret") {
		t.Errorf("the integration tells its secret: %s", got.body)
	}
}
