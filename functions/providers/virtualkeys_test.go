package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

func TestVirtualKeyBringsItsIntegration(t *testing.T) {
	const canary = "CANARY-0123456789"
	h := newInstallation(t)
	a := h.Do("POST", "/virtual-keys", key, `{"name":"Azure","provider":"azure-openai","key":"`+canary+`","note":"n","resourceName":"res",
		"deploymentConfig":[{"apiVersion":"2024-10-21","deploymentName":"gpt","alias":"a","is_default":true}],"usage_limits":{"credit_limit":5}}`).OK()
	slug := a.Text("data", "slug")
	if want := `{"data":{"slug":"` + slug + `"},"slug":"` + slug + `","success":true}`; string(a.Body) != want {
		t.Errorf("create answered %s", a.Body)
	}
	got := h.Do("GET", "/virtual-keys/"+slug, key, nil).OK()
	if got.Text("object") != "virtual-key" || got.Text("ai_provider_name") != "azure-openai" || got.Text("model_config", "resourceName") != "res" ||
		got.Text("model_config", "deploymentConfig", "0", "deploymentName") != "gpt" || got.At("model_config", "deploymentConfig", "0", "is_default") != true ||
		got.Text("masked_key") != "CA****89" || got.At("usage_limits", "credit_limit") != 5.0 || len(got.At("secret_mappings").([]any)) != 0 {
		t.Errorf("read: %s", got.Body)
	}
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	of, i := integrationOf(t, h, slug)
	cred := credentialOf(t, &of, i)
	if cred.Key != canary || len(cred.Deployments) != 1 || cred.Deployments[0] != (provider.Deployment{Name: "gpt", Alias: "a", APIVersion: "2024-10-21", Default: true}) || cred.Fields["azure_resource_name"] != "res" {
		t.Errorf("credential %+v", cred)
	}
	// The same store: it is a provider too.
	if got := h.Do("GET", "/providers/"+slug, key, nil).OK(); got.Text("object") != "provider" || got.Text("integration_id") != slug {
		t.Errorf("as a provider: %s", got.Body)
	}
	if got := h.Do("PUT", "/virtual-keys/"+slug, key, `{"name":"New","key":"sk-another-secret","deploymentConfig":[{"apiVersion":"v2","deploymentName":"o3"}],"provider":"azure-openai"}`).OK(); string(got.Body) != "{}" {
		t.Errorf("update answered %s", got.Body)
	}
	of, i = integrationOf(t, h, slug)
	if cred = credentialOf(t, &of, i); cred.Key != "sk-another-secret" || cred.Deployments[0].Name != "o3" || cred.Fields["azure_resource_name"] != "res" {
		t.Errorf("credential after the update %+v", cred)
	}
	log, err := json.Marshal(h.Audit())
	if err != nil || bytes.Contains(log, []byte(canary)) || bytes.Contains(of.Body, []byte("sk-another")) || bytes.Contains(got.Body, []byte(canary)) {
		t.Error("a secret is shown or stored in the clear")
	}
	h.Do("DELETE", "/virtual-keys/"+slug, key, nil).OK()
	if rec, _, err := h.Resources.Get(context.Background(), sc, provider.KindIntegration, of.ID); err != nil || !rec.Archived() {
		t.Errorf("the integration of a deleted key is %s, %v", rec.Status, err)
	}
	// While another provider calls the integration it stays.
	h.Do("POST", "/virtual-keys", key, `{"name":"k","slug":"k","provider":"openai","key":"sk-abcdefgh"}`).OK()
	of, _ = integrationOf(t, h, "k")
	h.Do("POST", "/providers", key, `{"name":"second","integration_id":"k"}`).OK()
	h.Do("DELETE", "/providers/k", key, nil).OK()
	if rec, _, err := h.Resources.Get(context.Background(), sc, provider.KindIntegration, of.ID); err != nil || rec.Archived() {
		t.Errorf("an integration in use is %s, %v", rec.Status, err)
	}
}

func TestOlderNamesMeanFieldsOfTheProvider(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want map[string]string
	}{
		"bedrock":        {`"provider":"bedrock","awsAccessKeyId":"AKID","awsSecretAccessKey":"s3cret","awsRegion":"eu-west-1"`, map[string]string{"aws_auth_type": "accessKey", "aws_access_key_id": "AKID", "aws_secret_access_key": "s3cret", "aws_region": "eu-west-1"}},
		"bedrock role":   {`"provider":"bedrock","awsRoleArn":"arn:aws:iam::1:role/r","awsRegion":"eu-west-1"`, map[string]string{"aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::1:role/r", "aws_region": "eu-west-1"}},
		"bedrock key":    {`"provider":"bedrock","key":"abc","awsRegion":"eu-west-1"`, map[string]string{"aws_auth_type": "apiKey", "aws_region": "eu-west-1"}},
		"vertex":         {`"provider":"vertex-ai","key":"ya29.x","vertexProjectId":"p","vertexRegion":"us-east5","vertexSkipPtuCostAttribution":true`, map[string]string{"vertex_auth_type": "basic", "vertex_project_id": "p", "vertex_region": "us-east5", "vertex_skip_ptu_cost_attribution": "true"}},
		"vertex account": {`"provider":"vertex-ai","vertexRegion":"us-east5","vertexServiceAccountJson":{"project_id":"p"}`, map[string]string{"vertex_auth_type": "serviceAccount", "vertex_region": "us-east5", "vertex_service_account_json": `{"project_id":"p"}`}},
		"workers":        {`"provider":"workers-ai","key":"k","workersAiAccountId":"acc"`, map[string]string{"workers_ai_account_id": "acc"}},
		"azure":          {`"provider":"azure-openai","key":"k","resourceName":"r","deploymentName":"d","apiVersion":"v"`, map[string]string{"azure_auth_mode": "default", "azure_resource_name": "r", "azure_api_version": "v"}},
	} {
		h := newInstallation(t)
		got := h.Do("POST", "/virtual-keys", key, `{"name":"k","slug":"k",`+c.body+`}`)
		if got.Status != 200 {
			t.Errorf("%s: %s", name, got.Body)
			continue
		}
		of, i := integrationOf(t, h, "k")
		cred := credentialOf(t, &of, i)
		if len(cred.Fields) != len(c.want) {
			t.Errorf("%s: fields %v", name, cred.Fields)
		}
		for field, want := range c.want {
			if cred.Fields[field] != want {
				t.Errorf("%s: %s = %q, want %q", name, field, cred.Fields[field], want)
			}
		}
		if name == "azure" && (len(cred.Deployments) != 1 || cred.Deployments[0].Name != "d" || cred.Deployments[0].APIVersion != "v") {
			t.Errorf("deployments %+v", cred.Deployments)
		}
	}
}

func TestFieldNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range append(fields(), keyFields()...) {
		if seen[f.Name] {
			t.Errorf("%s is described twice", f.Name)
		}
		seen[f.Name] = true
	}
	for _, name := range []string{"apiVersion", "awsAccessKeyId", "awsSecretAccessKey", "awsRegion", "vertexProjectId", "vertexRegion", "workersAiAccountId", "vertexSkipPtuCostAttribution"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestMappedKeyOfAVirtualKey(t *testing.T) {
	h := newInstallation(t)
	h.SecretReference("vault")
	h.Do("POST", "/virtual-keys", key, `{"name":"k","slug":"k","provider":"bedrock","awsRegion":"us-east-1","awsAccessKeyId":"AKID","secret_mappings":[{"target_field":"model_config.awsSecretAccessKey","secret_reference_id":"vault"}]}`).OK()
	if _, i := integrationOf(t, h, "k"); i.SecretMappings[0].TargetField != "configurations.aws_secret_access_key" {
		t.Errorf("stored mapping %+v", i.SecretMappings)
	}
	if got := h.Do("GET", "/virtual-keys/k", key, nil).OK(); got.Text("secret_mappings", "0", "target_field") != "model_config.awsSecretAccessKey" {
		t.Errorf("read: %s", got.Body)
	}
	h.Do("POST", "/virtual-keys", key, `{"name":"m","slug":"m","provider":"openai","secret_mappings":[{"target_field":"key","secret_reference_id":"vault"}]}`).OK()
	h.Do("PUT", "/virtual-keys/m", key, `{"secret_mappings":[]}`).RequireFault(400, "AB01", "key")
	h.Do("PUT", "/virtual-keys/m", key, `{"secret_mappings":[],"key":"sk-abcdefgh"}`).OK()
}

// Virtual keys have the credentials of their integration.
func TestVirtualKeysHaveSeveralCredentials(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Do("POST", "/virtual-keys", key, `{"name":"x","slug":"x","provider":"openai","custom_host":"https://own.example.com/v1","credentials":[{"label":"a","key":"sk-aaaa-0001","weight":2},{"key":"sk-bbbb-0001"}]}`).OK()
	a := h.Do("GET", "/virtual-keys/x", key, nil).OK()
	if got, want := fmt.Sprint(a.At("credentials")), "[map[label:a masked_key:sk****01 weight:2] map[label:2 masked_key:sk****01 weight:1]]"; got != want {
		t.Errorf("%s", a.Body)
	}
	h.Do("PUT", "/virtual-keys/x", key, `{"custom_host":"https://attacker.example.com/v1"}`).RequireFault(400, "AB01", "custom_host")
	h.Do("PUT", "/virtual-keys/x", key, `{"credentials":null,"key":"sk-cccc-0001"}`).OK()
	if of, i := integrationOf(t, h, "x"); len(i.Credentials) != 0 || credentialOf(t, &of, i).Key != "sk-cccc-0001" {
		t.Errorf("%+v", i)
	}
}
