//go:build !core

package assembly

import (
	"slices"

	"gateway/functions/auth"
	"gateway/functions/scim"
	"gateway/shared/admin"
	"gateway/shared/app"
)

// Single sign-on: OpenID Connect, SAML, SCIM, and the OAuth server.
func init() {
	parts = append(parts, part{families: func(c *app.Core, list []admin.Family) []admin.Family {
		list = before("feedback", list, scim.New(scim.NewDeps(c)))
		signIn := auth.New(auth.NewDeps(c))
		list[slices.IndexFunc(list, func(f admin.Family) bool { return f.Name == signIn.Name })] = signIn
		return list
	}})
}
