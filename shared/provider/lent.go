package provider

import (
	"context"
	"net/http"
	"net/url"
	"os"

	"gateway/shared/fault"
	"gateway/shared/seal/reference"
)

// Proofs returns external secret managers the same proofs that providers of the same
// clouds get, by the same rules about what the gateway lends.
type Proofs struct{ Tokens *Tokens }

var _ reference.Identities = Proofs{}

// target is a target that represents a secret manager in this package's schemes.
func (p Proofs) target(manager string, fields map[string]string) *Target {
	return &Target{Provider: &Provider{ID: manager}, Credential: Credential{Fields: fields}, Saved: true, Signer: p.Tokens}
}

// SignAWS implements reference.Identities.
func (p Proofs) SignAWS(ctx context.Context, auth map[string]string, req *http.Request, body []byte, service, region string) error {
	keys, err := awsCredentials(p.target(reference.AWS, auth), ctx, auth["aws_auth_type"], region)
	if err != nil {
		return err
	}
	return signAWS(ctx, req, body, keys, service, region, p.Tokens.Now())
}

// AzureToken implements reference.Identities. The mode default is the identity that the
// gateway's host gives: a federated token if there is one, otherwise the managed identity.
func (p Proofs) AzureToken(ctx context.Context, auth map[string]string, resource string) (string, error) {
	fields := map[string]string{"azure_entra_scope": resource + "/.default"}
	for _, name := range []string{"azure_entra_tenant_id", "azure_entra_client_id", "azure_entra_client_secret", "azure_managed_client_id"} {
		if v := auth[name]; v != "" {
			fields[name] = v
		}
	}
	mode := auth["azure_auth_mode"]
	if mode == "default" {
		if mode = azureManaged; os.Getenv(azureFederatedFile) != "" {
			mode = azureWorkload
		}
	}
	if u, err := url.Parse(resource); err != nil || u.Host == "" {
		return "", fault.Invalid("azure_vault_url", "is not a URL")
	}
	return azureToken(p.target(reference.Azure, fields), ctx, mode)
}
