// Package console assembles the administration from the core of an
// installation and the families it is given.
package console

import (
	"context"
	"net/http"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// New makes the handler that serves the families.
func New(c *app.Core, audit admin.Recorder, families ...admin.Family) (*admin.Handler, error) {
	h, err := admin.NewHandler(admin.Deps{
		Resources: c.Resources, Sealer: c.Sealer, Authenticate: Authenticate(c), Audit: audit, Rights: rights(c.Loader), Lenient: lenient(c.Loader), Repeats: func() bool { return !c.KeepTwins },
	}, families...)
	if err != nil {
		return nil, err
	}
	c.Administration = h
	return h, nil
}

// Secrets resolves secret mappings for calls that the administration makes itself.
func Secrets(c *app.Core) *provider.Loaded {
	return &provider.Loaded{Secrets: provider.NewSecrets(c.Sealer, provider.NewTokens(c.Transport, c.Now), c.Transport), Loader: c.Loader}
}

// Authenticate finds the caller of an administration request by its API key or its
// session. The key of a user has the role that the user has now, but never a higher rank than
// the key's creator had.
func Authenticate(core *app.Core) admin.Authenticate {
	a, l := core.Auth, core.Loader
	sessions := signedIn{Sessions(core)}
	byKey := byKey(a, l)
	return func(ctx context.Context, r *http.Request, requestID string) (admin.Caller, error) {
		sent, err := readCredential(r, core.PublicURL)
		switch {
		case err != nil:
			return admin.Caller{}, err
		case sent.keySession:
			_, c, err := bySession(ctx, core, sent.token)
			return c, err
		case signin.IsToken(sent.token):
			return sessions.caller(ctx, r, sent.token)
		}
		return byKey(ctx, sent.token, identity.AuthenticationAttempt{Request: r, ID: requestID})
	}
}

func byKey(a *identity.Authenticator, l *resource.Loader) func(context.Context, string, identity.AuthenticationAttempt) (admin.Caller, error) {
	return func(ctx context.Context, token string, by identity.AuthenticationAttempt) (admin.Caller, error) {
		p, err := a.Authenticate(ctx, token, by)
		if err != nil {
			return admin.Caller{}, err
		}
		return CallerOf(ctx, l, p)
	}
}

// CallerOf returns the caller that a principal is now. The role of a user's key is the
// user's present one, but never above the rank of the key's creator.
func CallerOf(ctx context.Context, l *resource.Loader, p *identity.Principal) (admin.Caller, error) {
	c := admin.Caller{KeyID: p.KeyID, UserID: p.UserID, Type: string(p.Type), Scope: p.Scope, Scopes: p.Scopes, Limits: p.Subject}
	v, err := l.Fresh(ctx, p.Scope.Org)
	if err != nil {
		return admin.Caller{}, err
	}
	granted, personal, err := identity.Granted(ctx, v, p)
	if err != nil {
		return admin.Caller{}, err
	}
	if c.Shared = !personal; p.UserID == "" {
		return c.As(granted), nil
	}
	own, ok, err := membership.LoadRank(ctx, v, p.Scope, p.UserID)
	if err != nil {
		return admin.Caller{}, err
	}
	if !ok {
		return admin.Caller{}, identity.ErrInvalidKey()
	}
	return c.As(own.Min(granted)), nil
}

// rights evaluates an organization's settings for the role of a caller.
func rights(l *resource.Loader) admin.Rights {
	return func(ctx context.Context, c *admin.Caller, scope string) (allowed, decided bool, err error) {
		v, err := l.Fresh(ctx, c.Scope.Org)
		if err != nil {
			return false, false, err
		}
		org, err := tenant.LoadSettings(ctx, v, c.Scope)
		if err != nil {
			return false, false, err
		}
		allowed, decided = org.Settings.Rule(string(c.Rank), scope)
		return allowed, decided, nil
	}
}

// lenient reports whether the settings of an organization ignore unknown members.
func lenient(l *resource.Loader) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, org string) (bool, error) {
		v, err := l.Fresh(ctx, org)
		if err != nil {
			return false, err
		}
		of, err := tenant.LoadSettings(ctx, v, store.Scope{Org: org})
		if err != nil {
			return false, err
		}
		return of.Settings.Lenient, nil
	}
}
