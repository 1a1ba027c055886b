package provider

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
)

// entra is a token service that checks what it is sent.
type entra struct {
	*httptest.Server
	t        *testing.T
	requests int
}

func newEntra(t *testing.T) *entra {
	t.Helper()
	e := &entra{t: t}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	t.Setenv(azureAuthority, e.URL)
	return e
}

func (e *entra) serve(w http.ResponseWriter, r *http.Request) {
	e.requests++
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	proved := form.Get("client_secret") == "right secret" ||
		form.Get("client_assertion") == "federated" && form.Get("client_assertion_type") == entraAssertion
	switch {
	case r.Method != "POST" || r.URL.Path != "/tenant-1/oauth2/v2.0/token" || form.Get("grant_type") != "client_credentials" || form.Get("client_id") != "client-1":
		w.WriteHeader(400)
		fmt.Fprint(w, `{"error":"invalid_request","error_description":"wrong form"}`)
	case !proved:
		w.WriteHeader(401)
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":"the secret %s is wrong"}`, form.Get("client_secret"))
	default:
		fmt.Fprintf(w, `{"token_type":"Bearer","expires_in":3599,"access_token":"token-%d-for-%s"}`, e.requests, url.QueryEscape(form.Get("scope")))
	}
}

func azureTarget(t *testing.T, signer Signer, fields map[string]string) *Target {
	t.Helper()
	p, ok := ByID("azure-openai")
	if !ok {
		t.Fatal("no azure-openai")
	}
	return &Target{Provider: p, Signer: signer, Credential: Credential{Fields: fields}}
}

func authorized(t *Target) (http.Header, error) {
	req := httptest.NewRequest("POST", "https://res.openai.azure.com/openai/v1/chat/completions", nil)
	err := t.Authorize(context.Background(), req, []byte("{}"))
	return req.Header, err
}

func TestEntraTokensAreFetchedOnceAndFreshAgain(t *testing.T) {
	newEntra(t)
	now := time.Now()
	tokens := NewTokens(http.DefaultTransport, func() time.Time { return now })
	fields := map[string]string{"azure_auth_mode": "entra", "azure_entra_tenant_id": "tenant-1", "azure_entra_client_id": "client-1", "azure_entra_client_secret": "right secret"}
	want := "Bearer token-1-for-" + url.QueryEscape(entraScope)
	for range 2 {
		h, err := authorized(azureTarget(t, tokens, fields))
		if err != nil || h.Get("Authorization") != want || h.Get("api-key") != "" {
			t.Fatalf("%v %v", h, err)
		}
	}
	now = now.Add(59 * time.Minute)
	if h, err := authorized(azureTarget(t, tokens, fields)); err != nil || !strings.HasPrefix(h.Get("Authorization"), "Bearer token-2-") {
		t.Errorf("in its last minute: %v %v", h, err)
	}
	fields["azure_entra_scope"] = "https://other/.default"
	if h, err := authorized(azureTarget(t, tokens, fields)); err != nil || !strings.HasSuffix(h.Get("Authorization"), url.QueryEscape("https://other/.default")) {
		t.Errorf("another scope: %v %v", h, err)
	}
	fields["azure_ad_token"] = "ready-made"
	if h, err := authorized(azureTarget(t, tokens, fields)); err != nil || h.Get("Authorization") != "Bearer ready-made" {
		t.Errorf("a ready-made token: %v %v", h, err)
	}
}

func TestRefusedEntraCredentialsNameTheFieldAndNotTheSecret(t *testing.T) {
	newEntra(t)
	tokens := NewTokens(http.DefaultTransport, time.Now)
	good := map[string]string{"azure_auth_mode": "entra", "azure_entra_tenant_id": "tenant-1", "azure_entra_client_id": "client-1", "azure_entra_client_secret": "right secret"}
	for name, c := range map[string]struct {
		field, value, names string
		status              int
	}{
		"wrong secret":     {"azure_entra_client_secret", "wrong secret", "azure_entra_client_id", 401},
		"no secret":        {"azure_entra_client_secret", "", "azure_entra_client_secret", 400},
		"no client":        {"azure_entra_client_id", "", "azure_entra_client_id", 400},
		"no tenant":        {"azure_entra_tenant_id", "", "azure_entra_tenant_id", 400},
		"a path as tenant": {"azure_entra_tenant_id", "../x", "azure_entra_tenant_id", 400},
		"unknown mode":     {"azure_auth_mode", "magic", "azure_auth_mode", 400},
	} {
		fields := map[string]string{}
		for k, v := range good {
			fields[k] = v
		}
		fields[c.field] = c.value
		_, err := authorized(azureTarget(t, tokens, fields))
		f := fault.From(err)
		if err == nil || f.Status() != c.status || f.Field != c.names || strings.Contains(f.Error(), "wrong secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAzureIdentityOfTheGatewayRequiresTheOperator(t *testing.T) {
	newEntra(t)
	tokens := NewTokens(http.DefaultTransport, time.Now)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("federated\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-IDENTITY-HEADER") != "host-key" || r.URL.Query().Get("resource") != "https://cognitiveservices.azure.com" || r.URL.Query().Get("client_id") != "own-1" {
			w.WriteHeader(400)
			return
		}
		fmt.Fprintf(w, `{"access_token":"managed","expires_on":"%d"}`, time.Now().Add(time.Hour).Unix())
	}))
	defer host.Close()
	t.Setenv(azureFederatedFile, file)
	t.Setenv(azureTenant, "tenant-1")
	t.Setenv(azureIdentityURL, host.URL)
	t.Setenv(azureIdentityKey, "host-key")
	for mode, want := range map[string]string{azureWorkload: "Bearer token-1-", azureManaged: "Bearer managed"} {
		target := azureTarget(t, tokens, map[string]string{"azure_auth_mode": mode, "azure_workload_client_id": "client-1", "azure_managed_client_id": "own-1"})
		t.Setenv(azureIdentityVariable, "")
		if _, err := authorized(target); err == nil || fault.From(err).Field != "azure_auth_mode" {
			t.Errorf("%s without leave: %v", mode, err)
		}
		t.Setenv(azureIdentityVariable, "true")
		if h, err := authorized(target); err != nil || !strings.HasPrefix(h.Get("Authorization"), want) {
			t.Errorf("%s: %v %v", mode, h, err)
		}
		target.CallerKey = true
		if _, err := authorized(target); err == nil {
			t.Errorf("%s: lent to a caller who names the provider himself", mode)
		}
	}
}

func TestAWSIdentityIsTradedForAnEntraToken(t *testing.T) {
	newEntra(t)
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		if form.Get("Action") != "GetWebIdentityToken" || form.Get("Audience.member.1") != entraAudience || !strings.Contains(r.Header.Get("Authorization"), "/sts/aws4_request") {
			w.WriteHeader(403)
			fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>`)
			return
		}
		fmt.Fprint(w, `<GetWebIdentityTokenResponse><GetWebIdentityTokenResult><WebIdentityToken>federated</WebIdentityToken></GetWebIdentityTokenResult></GetWebIdentityTokenResponse>`)
	}))
	defer sts.Close()
	t.Setenv(awsSTSVariable, sts.URL)
	t.Setenv(awsServiceRoleVariable, "true")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "eu-west-1")
	target := azureTarget(t, NewTokens(http.DefaultTransport, time.Now), map[string]string{
		"azure_auth_mode": azureEntraFederated, "azure_workload_tenant_id": "tenant-1", "azure_entra_client_id": "client-1",
	})
	h, err := authorized(target)
	if err != nil || !strings.HasPrefix(h.Get("Authorization"), "Bearer token-1-") {
		t.Errorf("%v %v", h, err)
	}
}
