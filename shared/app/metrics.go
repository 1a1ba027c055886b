package app

import (
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/identity"
)

// MayReadMetrics checks that a request has a key of the organization with analytics.view:
// the metrics of a process are about all of its workspaces.
func (c *Core) MayReadMetrics(r *http.Request) error {
	token, _, err := identity.Token(r.Header)
	if err != nil {
		return err
	}
	who, err := c.Auth.Authenticate(r.Context(), token, identity.AuthenticationAttempt{})
	if err != nil {
		return err
	}
	if who.Scope.Workspace != "" || !who.Scopes.Has("analytics.view") {
		return fault.New(fault.InsufficientScope, "", "The metrics need a key of the organization with the scope analytics.view")
	}
	return nil
}
