package provider

import (
	"context"
	"net/http"

	"gateway/shared/fault"
)

// authorizeAWS sends a bearer key. Requests that must be signed with AWS
// Signature Version 4 are refused, naming what would be needed.
func (t *Target) authorizeAWS(_ context.Context, req *http.Request, _ []byte) error {
	mode := t.Field("aws_auth_type")
	if mode == "apiKey" || mode == "" && t.Credential.Key != "" && t.Field("aws_access_key_id") == "" {
		return t.keyHeader(req.Header, "Authorization", "Bearer ")
	}
	if mode == "" {
		mode = "accessKey"
	}
	return fault.Newf(fault.UnsupportedOperation, "aws_auth_type", "aws_auth_type %s cannot be used here; send an api_key with aws_auth_type apiKey", mode)
}
