package auth

import (
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/signin/attempts"
)

// Rate limits of public routes per address. Applications that request tokens serve many users
// from one address.
var (
	ofBrowsers     = attempts.Bound{Name: "pages of sign-in", Most: 120, Take: 5, Each: time.Minute}
	ofClients      = attempts.Bound{Name: "calls of clients", Most: 1200, Take: 20, Each: time.Minute}
	ofOrganisation = attempts.Bound{Name: "sign-ins to an organisation", Most: 1200, Take: 20, Each: time.Minute}
	ofWrongKeys    = attempts.Bound{Name: "sign-ins with a wrong key", Most: 20, Take: 1, Each: time.Minute}
	// ofStrays limits what anyone can write to the audit log of an organisation.
	ofStrays = attempts.Bound{Name: "answers that end no sign-in", Most: 60, Take: 1, Each: time.Minute}
)

// bound makes a public route reject an address that calls it too often. Routes that only
// describe the gateway are cheap and not limited.
func (f *family) bound(r *admin.Route) {
	by := ofBrowsers
	if r.Refusals != nil && r.Produces != page.HTML {
		if by = ofClients; r.Method == "GET" {
			return
		}
	}
	do := r.Do
	r.Do = func(c *admin.Call) (any, error) {
		if err := f.attempts.Try(c.Context, by, attempts.From(c.ClientIP()), c.Now); err != nil {
			return nil, err
		}
		return do(c)
	}
}
