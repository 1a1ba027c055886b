package membership

import (
	"context"

	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Named finds the users of signed tokens; it implements jwt.Users.
type Named struct{}

// named is a user with its id.
type named struct {
	id            string
	live, stopped bool
}

// Member finds a user by email address; id is empty if there is none. member reports whether
// the user has a role in the workspace.
func (Named) Member(ctx context.Context, v *resource.View, workspace store.Scope, email string) (id string, member bool, err error) {
	address, ok := notice.Address(email)
	if !ok {
		return "", false, nil
	}
	u, ok, err := resource.Load(ctx, v, workspace.Organisation(), KindUser, slugOf(address), func(rec resource.Record) (named, error) {
		form, err := DecodeUser(rec)
		if err != nil {
			return named{}, err
		}
		return named{rec.ID, !rec.Archived(), form.Stopped}, nil
	})
	if err == nil && ok && u.stopped {
		return u.id, false, nil // tokens cannot act for a deactivated user
	}
	if err != nil || !ok || !u.live {
		return "", false, err
	}
	_, member, err = LoadRole(ctx, v, workspace, u.id)
	return u.id, member, err
}
