// Package auth is the family of people who sign in: who they are, their sessions, and
// the end of them.
package auth

import (
	"context"
	"net/http"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/signin"
)

// Deps is what the family works with.
type Deps struct {
	Sessions *signin.Sessions
	// Self finds the callers of routes about themselves, SessionOf their session.
	Self      admin.Authenticate
	SessionOf func(context.Context, *http.Request) (*signin.Session, string, error)
}

// Of is what the family works with in an installation.
func Of(c *app.Core) Deps {
	sessions := signin.New(c.Loader, c.Resources)
	return Deps{Sessions: sessions, Self: console.Self(c), SessionOf: console.SessionOf(sessions)}
}

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	return admin.Family{Name: "auth", Doc: "Who is signed in, and until when.", Routes: slices.Concat(f.selfRoutes())}
}

type family struct{ Deps }

// about are the scopes of routes about the caller, which everybody has who signed in.
var about = []string{"auth.self"}
