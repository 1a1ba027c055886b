package auth

import (
	"context"
	"errors"
	"net/http"

	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/oidc"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
)

// renewal renews sessions at their identity providers.
func renewal(c *app.Core) *signin.Renewal {
	return &signin.Renewal{
		Sealer: c.Sealer,
		Ask: func(ctx context.Context, of *signin.Session, token string) (string, error) {
			rec, ok, err := c.Resources.Get(ctx, store.Scope{Org: of.Org}, sso.KindConnection, of.Via)
			if err != nil {
				return "", err
			}
			if !ok || rec.Archived() {
				return "", signin.ErrNotRenewed // it can never be renewed
			}
			form, err := sso.DecodeConnection(rec)
			if err != nil {
				return "", err
			}
			client, err := clientOf(ctx, connection{Record: &rec, Form: form}, c.Sealer)
			if err != nil {
				return "", err
			}
			client.Via, client.Now = c.Transport, c.Resources.Now
			next, err := client.Renew(ctx, token, of.Subject)
			if errors.Is(err, oidc.ErrNotRenewed) {
				err = signin.ErrNotRenewed
			}
			return next, err
		},
		Ended: func(tx *resource.Tx, of *signin.Session) error {
			return audit.Append(tx, audit.Entry{
				Method: http.MethodPost, URI: "/auth/logout", UserID: of.User, UserType: audit.UserTypeUser, StatusCode: http.StatusOK,
				ResourceType: "sessions", Action: audit.Logout, ResourceID: of.ID, Details: map[string]string{"error": signin.ErrNotRenewed.Error(), "sso_client_id": of.Via},
			})
		},
	}
}
