package provider

import (
	"context"
	"net/http"

	"gateway/shared/fault"
)

// authorizeOCI refuses: the request signature of Oracle Cloud is not made.
func (t *Target) authorizeOCI(context.Context, *http.Request, []byte) error {
	return fault.New(fault.UnsupportedOperation, "provider", "oracle needs a request signature that this gateway does not make")
}
