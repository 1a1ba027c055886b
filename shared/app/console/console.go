// Package console assembles the administration from the core of an
// installation and the families it is given.
package console

import (
	"context"
	"net/http"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/identity"
)

// New makes the handler that serves the families.
func New(c *app.Core, audit admin.Recorder, families ...admin.Family) (*admin.Handler, error) {
	return admin.NewHandler(admin.Deps{
		Resources: c.Resources, Sealer: c.Sealer, Authenticate: Authenticate(c.Auth), Audit: audit,
	}, families...)
}

// Authenticate finds the caller of an administration request by its API key.
func Authenticate(a *identity.Authenticator) admin.Authenticate {
	return func(ctx context.Context, r *http.Request) (admin.Caller, error) {
		token, _, err := identity.Token(r.Header)
		if err != nil {
			return admin.Caller{}, err
		}
		p, err := a.Authenticate(ctx, token)
		if err != nil {
			return admin.Caller{}, err
		}
		return admin.Caller{
			KeyID: p.KeyID, UserID: p.UserID, Type: string(p.Type), Scope: p.Scope, Role: admin.Role(p.Role), Scopes: p.Scopes,
		}, nil
	}
}
