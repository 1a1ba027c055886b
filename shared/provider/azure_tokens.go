package provider

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"gateway/shared/fault"
)

// Variables of the process's environment that an operator sets.
const (
	// azureIdentityVariable set to "true" lets saved providers use the identity of the gateway's
	// own process: azure_auth_mode managed and workload. It reaches whatever the gateway may
	// reach, so it is off unless it is set.
	azureIdentityVariable = "GATEWAY_AZURE_IDENTITY"

	azureAuthority     = "AZURE_AUTHORITY_HOST"
	azureTenant        = "AZURE_TENANT_ID"
	azureClient        = "AZURE_CLIENT_ID"
	azureFederatedFile = "AZURE_FEDERATED_TOKEN_FILE"
	azureIdentityURL   = "IDENTITY_ENDPOINT" // of the host that the gateway runs on
	azureIdentityKey   = "IDENTITY_HEADER"
)

const (
	entraHost       = "https://login.microsoftonline.com"
	entraScope      = "https://cognitiveservices.azure.com/.default"
	entraAudience   = "api://AzureADTokenExchange"
	entraAssertion  = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	identityVersion = "2019-08-01"
	azureService    = "Microsoft Entra"
)

// azureToken returns an access token for the target, from the cache or from Entra.
func azureToken(t *Target, ctx context.Context, mode string) (string, error) {
	switch mode {
	case azureEntra:
		return entraToken(t, ctx)
	case azureWorkload:
		return workloadToken(t, ctx)
	case azureManaged:
		return managedToken(t, ctx)
	case azureEntraFederated:
		return federatedToken(t, ctx)
	}
	return "", fault.Invalid("azure_auth_mode", "azure_auth_mode must be default, entra, managed, entraFederated or workload")
}

func azureTokenScope(t *Target) string {
	if s := t.Field("azure_entra_scope"); s != "" {
		return s
	}
	return entraScope
}

// entraToken returns the token of an application that has a secret.
func entraToken(t *Target, ctx context.Context) (string, error) {
	secret := t.Field("azure_entra_client_secret")
	if secret == "" {
		return "", fault.Invalid("azure_entra_client_secret", "azure_entra_client_secret is required by azure_auth_mode entra")
	}
	return fromEntra(t, ctx, t.Field("azure_entra_tenant_id"), "azure_entra_tenant_id", t.Field("azure_entra_client_id"), "azure_entra_client_id", TokenKey("secret", secret),
		func(context.Context, http.RoundTripper) (url.Values, error) {
			return url.Values{"client_secret": {secret}}, nil
		})
}

// workloadToken exchanges the token in the file that the gateway's platform refreshes.
func workloadToken(t *Target, ctx context.Context) (string, error) {
	if err := mayUseAzureIdentity(t, azureWorkload); err != nil {
		return "", err
	}
	file := os.Getenv(azureFederatedFile)
	if file == "" {
		return "", fault.Newf(fault.InvalidRequest, "azure_auth_mode", "The gateway's process has no federated token: %s is not set", azureFederatedFile)
	}
	tenant, client := t.Field("azure_workload_tenant_id"), t.Field("azure_workload_client_id")
	if tenant == "" {
		tenant = os.Getenv(azureTenant)
	}
	if client == "" {
		client = os.Getenv(azureClient)
	}
	return fromEntra(t, ctx, tenant, "azure_workload_tenant_id", client, "azure_workload_client_id", file,
		func(context.Context, http.RoundTripper) (url.Values, error) {
			token, err := os.ReadFile(file)
			if err != nil {
				return nil, fault.New(fault.ServiceUnavailable, "azure_auth_mode", "The federated token of the gateway's process cannot be read").WithCause(err)
			}
			return assertion(strings.TrimSpace(string(token))), nil
		})
}

func assertion(token string) url.Values {
	return url.Values{"client_assertion": {token}, "client_assertion_type": {entraAssertion}}
}

// federatedToken exchanges a token that AWS issues for the gateway's own identity.
func federatedToken(t *Target, ctx context.Context) (string, error) {
	if err := mayUseAWSIdentity(t, azureEntraFederated); err != nil {
		return "", err
	}
	keys, err := processKeys()
	if err != nil {
		return "", err
	}
	region := os.Getenv("AWS_REGION")
	if region == "" {
		region = "us-east-1"
	}
	s, err := t.signer()
	if err != nil {
		return "", err
	}
	tenant, field := t.Field("azure_entra_tenant_id"), "azure_entra_tenant_id"
	if tenant == "" {
		tenant, field = t.Field("azure_workload_tenant_id"), "azure_workload_tenant_id"
	}
	if tenant == "" {
		tenant = os.Getenv(azureTenant)
	}
	return fromEntra(t, ctx, tenant, field, t.Field("azure_entra_client_id"), "azure_entra_client_id", TokenKey("aws", keys.ID, region),
		func(ctx context.Context, rt http.RoundTripper) (url.Values, error) {
			token, err := webIdentity(ctx, rt, keys, region, s.Now())
			return assertion(token), err
		})
}

// mayUseAWSIdentity rejects use of the gateway's own AWS identity: always by credentials of a
// request, and by saved providers unless the operator allows it.
func mayUseAWSIdentity(t *Target, mode string) error {
	if t.CallerKey || os.Getenv(awsServiceRoleVariable) != "true" {
		return fault.Newf(fault.InvalidRequest, "azure_auth_mode", "azure_auth_mode %s works with the gateway's own AWS identity, which saved providers may use when the operator sets %s=true", mode, awsServiceRoleVariable)
	}
	return nil
}

// mayUseAzureIdentity does the same for the identity of the gateway's process or host at Azure.
func mayUseAzureIdentity(t *Target, mode string) error {
	if t.CallerKey || os.Getenv(azureIdentityVariable) != "true" {
		return fault.Newf(fault.InvalidRequest, "azure_auth_mode", "azure_auth_mode %s works with the gateway's own identity, which saved providers may use when the operator sets %s=true; use entra, or an api_key", mode, azureIdentityVariable)
	}
	return nil
}

// fromEntra requests a token by the client credentials flow. proof returns the client's secret or
// assertion; source identifies it in the key of the cache.
func fromEntra(t *Target, ctx context.Context, tenant, tenantField, client, clientField, source string, proof func(context.Context, http.RoundTripper) (url.Values, error)) (string, error) {
	switch {
	case !pathSegment(tenant):
		return "", fault.Invalid(tenantField, "%s must be the id or domain of an Entra tenant", tenantField)
	case client == "":
		return "", fault.Invalid(clientField, "%s is required by this azure_auth_mode", clientField)
	}
	s, err := t.signer()
	if err != nil {
		return "", err
	}
	host := os.Getenv(azureAuthority)
	if host == "" {
		host = entraHost
	}
	endpoint := strings.TrimRight(host, "/") + "/" + tenant + "/oauth2/v2.0/token"
	scope := azureTokenScope(t)
	return s.Get(ctx, TokenKey("entra", endpoint, client, scope, source), func(ctx context.Context, rt http.RoundTripper) (string, time.Time, error) {
		form, err := proof(ctx, rt)
		if err != nil {
			return "", time.Time{}, err
		}
		form.Set("grant_type", "client_credentials")
		form.Set("client_id", client)
		form.Set("scope", scope)
		token, life, err := oauthToken(ctx, rt, endpoint, form, azureService, clientField)
		return token, s.Now().Add(life), err
	})
}

// managedToken requests a token from the identity service of the gateway's host.
func managedToken(t *Target, ctx context.Context) (string, error) {
	if err := mayUseAzureIdentity(t, azureManaged); err != nil {
		return "", err
	}
	endpoint, key := os.Getenv(azureIdentityURL), os.Getenv(azureIdentityKey)
	if endpoint == "" {
		return "", fault.Newf(fault.InvalidRequest, "azure_auth_mode", "The gateway's host has no managed identity: %s is not set", azureIdentityURL)
	}
	s, err := t.signer()
	if err != nil {
		return "", err
	}
	query := url.Values{"api-version": {identityVersion}, "resource": {strings.TrimSuffix(azureTokenScope(t), "/.default")}}
	if client := t.Field("azure_managed_client_id"); client != "" {
		query.Set("client_id", client)
	}
	address := AddQuery(endpoint, query.Encode())
	return s.Get(ctx, TokenKey("azure-managed", address), func(ctx context.Context, rt http.RoundTripper) (string, time.Time, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return "", time.Time{}, fault.Invalid("azure_auth_mode", "the address of the identity service is not a URL")
		}
		req.Header.Set("X-IDENTITY-HEADER", key)
		status, body, err := tokenCall(rt, req, azureService)
		if err != nil {
			return "", time.Time{}, err
		}
		return identityResponse(status, body)
	})
}

// identityResponse reads the response of a host's identity service.
func identityResponse(status int, body []byte) (string, time.Time, error) {
	var answer struct {
		AccessToken string      `json:"access_token"`
		ExpiresOn   json.Number `json:"expires_on"` // Unix seconds
	}
	bad := json.Unmarshal(body, &answer) != nil
	if status < 200 || status > 299 {
		return "", time.Time{}, tokenRejected(status, azureService, "azure_managed_client_id", "")
	}
	until, err := answer.ExpiresOn.Int64()
	if bad || err != nil || answer.AccessToken == "" || !printable(answer.AccessToken) {
		f := fault.Newf(fault.InvalidProviderResponse, "", "The identity service of %s returned a response without an access token", azureService)
		f.Source = fault.SourceProvider
		return "", time.Time{}, f
	}
	return answer.AccessToken, time.Unix(until, 0), nil
}

// webIdentity requests a token from AWS by which Entra recognizes the process's identity.
func webIdentity(ctx context.Context, rt http.RoundTripper, keys awsKeys, region string, now time.Time) (string, error) {
	form := url.Values{"Action": {"GetWebIdentityToken"}, "Version": {stsVersion}, "Audience.member.1": {entraAudience}, "SigningAlgorithm": {"RS256"}}
	body := []byte(form.Encode())
	endpoint := os.Getenv(awsSTSVariable)
	if endpoint == "" {
		endpoint = "https://sts." + region + ".amazonaws.com"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(endpoint, "/")+"/", strings.NewReader(string(body)))
	if err != nil {
		return "", fault.Invalid("azure_auth_mode", "the address of the token service is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if err := signAWS(ctx, req, body, keys, "sts", region, now); err != nil {
		return "", err
	}
	const who = "AWS"
	status, answer, err := tokenCall(rt, req, who)
	if err != nil {
		return "", err
	}
	var a struct {
		Token string `xml:"GetWebIdentityTokenResult>WebIdentityToken"`
		Code  string `xml:"Error>Code"`
	}
	bad := xml.Unmarshal(answer, &a) != nil
	if status < 200 || status > 299 {
		return "", tokenRejected(status, who, "azure_auth_mode", a.Code)
	}
	if bad || !printable(a.Token) || a.Token == "" {
		f := fault.New(fault.InvalidProviderResponse, "", "The token service of AWS returned a response without a token")
		f.Source = fault.SourceProvider
		return "", f
	}
	return a.Token, nil
}
