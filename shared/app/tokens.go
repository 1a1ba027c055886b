package app

import (
	"context"
	"log/slog"

	"gateway/shared/audit"
	"gateway/shared/identity/jwt"
	"gateway/shared/identity/membership"
	"gateway/shared/route"
	"gateway/shared/tenant"
)

// tokens accepts tokens signed by the keys that an organization configured.
func (c *Core) tokens() *jwt.Verifier {
	return jwt.New(jwt.Options{
		Loader: c.Loader, Client: c.Transport, Now: c.Now, ConfigKind: route.KindConfig, Users: membership.Named{},
		Settings: func(_ string, o *tenant.Organisation) jwt.Settings {
			return jwt.Settings{URL: o.Settings.JWKSURL, Set: o.Settings.JWKS, MaxAge: o.Settings.MaxSession()}
		},
		Refused: c.refused,
	})
}

// refused notes a token that was not accepted in the audit log. When the queue fails, the
// record waits in the outbox.
func (c *Core) refused(ctx context.Context, org string, r jwt.Refusal) {
	if c.Records == nil {
		return
	}
	e := audit.Entry{
		Action: audit.Login, ResourceType: "auth", StatusCode: r.Status, RequestID: r.By.ID,
		Details: map[string]string{"jwtToken": r.Masked, "error": r.Reason},
	}
	if r.By.Request != nil {
		e.Describe(r.By.Request)
	}
	if err := c.Records.Record(context.WithoutCancel(ctx), org, e); err != nil {
		slog.Error("a refused token is not in the audit log", "error", err)
	}
}
