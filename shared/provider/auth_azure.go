package provider

import (
	"context"
	"net/http"

	"gateway/shared/fault"
)

// The values of azure_auth_mode.
const (
	azureKey            = "default"
	azureEntra          = "entra"          // an application with a client secret
	azureManaged        = "managed"        // the identity of the gateway's own host
	azureWorkload       = "workload"       // the gateway's own federated token
	azureEntraFederated = "entraFederated" // the gateway's own AWS identity, federated
)

// authorizeAzure sends, in this order of preference, a ready-made Entra token, the token of
// the target's azure_auth_mode, or the key in the form that the service wants.
func authorizeAzure(t *Target, ctx context.Context, req *http.Request) error {
	token := t.Field("azure_ad_token")
	if token != "" && !printable(token) {
		return fault.Invalid("azure_ad_token", "azure_ad_token must not contain spaces or control characters")
	}
	if mode := t.Field("azure_auth_mode"); token == "" && mode != "" && mode != azureKey {
		var err error
		if token, err = azureToken(t, ctx, mode); err != nil {
			return err
		}
	}
	if t.anthropicDeployment() && req.Header.Get("anthropic-version") == "" {
		version, _ := headerValue(t, "{anthropic_version|2023-06-01}")
		req.Header.Set("anthropic-version", version)
	}
	switch {
	case token != "":
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	case t.anthropicDeployment():
		return keyHeader(t, req.Header, "x-api-key", "")
	}
	return keyHeader(t, req.Header, t.Provider.Auth.Name, t.Provider.Auth.Prefix)
}
