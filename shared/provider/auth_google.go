package provider

import (
	"context"
	"net/http"

	"gateway/shared/fault"
)

// authorizeGoogle sends the key, which is an OAuth access token.
func (t *Target) authorizeGoogle(_ context.Context, req *http.Request) error {
	if t.Credential.Key == "" {
		return fault.New(fault.UnsupportedOperation, "vertex_auth_type", "vertex-ai needs an OAuth access token as api_key; a service account cannot be used here")
	}
	return t.keyHeader(req.Header, "Authorization", "Bearer ")
}
