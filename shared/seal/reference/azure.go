package reference

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// azureVersion is the version of Key Vault's interface.
const azureVersion = "7.4"

// fromAzure calls a key vault.
func (r *Resolver) fromAzure(ctx context.Context, auth map[string]string, path string) (*Value, error) {
	const who = "Azure Key Vault"
	base, err := url.Parse(auth[azureVaultURL])
	if err != nil || base.Host == "" {
		return nil, refused("has an azure_vault_url that is not a URL")
	}
	cloud := cloudOf(base.Hostname())
	if cloud == "" {
		if auth[azureAuthMode] != entra {
			return nil, refused("has an azure_vault_url that the gateway's own identity is not lent to")
		}
		cloud = clouds[0]
	}
	bearer, err := r.identities.AzureToken(ctx, auth, "https://"+cloud)
	if err != nil {
		return nil, proofFailed(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.Scheme+"://"+base.Host+"/secrets/"+path+"?api-version="+azureVersion, nil)
	if err != nil {
		return nil, refused("has an azure_vault_url that is not a URL")
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Accept", "application/json")
	status, answer, err := r.ask(req, who)
	if err != nil {
		return nil, err
	}
	var a struct {
		Value *string `json:"value"`
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	bad := json.Unmarshal(answer, &a) != nil
	switch {
	case status == http.StatusOK && !bad && a.Value != nil:
		return newValue(*a.Value)
	case status == http.StatusOK:
		return nil, passing(nil, "has an answer of %s that cannot be read", who)
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 300 && status < 400:
		return nil, passing(nil, "has no answer: %s answered %d (%s)", who, status, word(a.Error.Code))
	}
	return nil, refused("was not given by %s: %d (%s)", who, status, word(a.Error.Code))
}
