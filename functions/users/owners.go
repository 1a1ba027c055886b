package users

import (
	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
)

// ownershipRoutes make owners of users, and admins of owners. A transfer takes both, one
// after the other: between them there are two owners, and never none.
func (f *family) ownershipRoutes() []admin.Route {
	routes := f.users.Below(admin.Route{
		Method: "PUT", Path: "/admin/users/{id}/ownership", Aliases: []string{"/users/{id}/ownership"}, Name: "setOwnership", Action: audit.Update, Errors: []int{409},
		Doc:  "Promote a user to owner of the organization, or demote an owner to admin. For owners, and for organization keys created by owners. The last owner cannot be demoted.",
		Body: []admin.Field{{Name: "owner", Type: admin.Boolean, Required: true, Doc: "Whether the user is an owner."}},
		Do:   f.users.At("update", f.setOwnership),
	})
	for i := range routes {
		routes[i].Role, routes[i].Recent = admin.Owner, true
	}
	return routes
}

func (f *family) setOwnership(c *admin.Call) (any, error) {
	return nil, c.Change(func(tx *resource.Tx) error {
		it, err := f.users.FindIn(c, tx)
		if err == nil {
			err = byHand(c, tx)
		}
		if err != nil {
			return err
		}
		owner := c.Body.Bool("owner")
		switch {
		case it.Form.Leaving:
			return fault.New(fault.Conflict, "id", "the user is being removed")
		case owner == (it.Form.Role == membership.Owner):
			return fault.Invalid("owner", "is what the user has already")
		}
		role := membership.Admin
		if owner {
			role = membership.Owner
		}
		if err := c.Caller.Grantor().Grant("owner", membership.OrganisationRights(role)); err != nil {
			return err
		}
		return membership.SetRole(tx, it.Record, it.Form, role, c.Actor())
	})
}
