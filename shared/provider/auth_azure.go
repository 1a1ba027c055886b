package provider

import (
	"context"
	"net/http"

	"gateway/shared/fault"
)

// authorizeAzure sends, in this order of preference, a ready-made Entra token,
// or the key in the way of the service.
func (t *Target) authorizeAzure(_ context.Context, req *http.Request) error {
	if token := t.Field("azure_ad_token"); token != "" {
		if !printable(token) {
			return fault.Invalid("azure_ad_token", "azure_ad_token must not contain spaces or control characters")
		}
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	if mode := t.Field("azure_auth_mode"); mode != "" && mode != "default" {
		return fault.Newf(fault.UnsupportedOperation, "azure_auth_mode", "azure_auth_mode %s cannot be used here; send an api_key or a ready-made azure_ad_token", mode)
	}
	if t.anthropicDeployment() {
		if req.Header.Get("anthropic-version") == "" {
			version, _ := t.headerValue("{anthropic_version|2023-06-01}")
			req.Header.Set("anthropic-version", version)
		}
		return t.keyHeader(req.Header, "x-api-key", "")
	}
	return t.keyHeader(req.Header, t.Provider.Auth.Name, t.Provider.Auth.Prefix)
}
