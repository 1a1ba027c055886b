package membership

import (
	"errors"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// SetResponsible stages that the user now, instead of was, answers for source: a configuration that
// determines who every user is, such as an identity provider or the keys of signed tokens. Either
// may be "" or identity.NoSponsor. See CheckNotResponsible.
func SetResponsible(tx *resource.Tx, source resource.Ref, was, now string) error {
	if was == now {
		return nil
	}
	if was != "" {
		if err := tx.RemoveUse(userRef(source.Scope, was), source); err != nil {
			return err
		}
	}
	if now == "" {
		return nil
	}
	if _, ok, err := tx.Get(source.Scope, KindUser, now); err != nil || !ok {
		return err // an installation's own key
	}
	return tx.Use(userRef(source.Scope, now), source)
}

// CheckNotResponsible refuses to end the ownership of a user who answers for an identity source.
// Otherwise, a former owner who controls an identity provider could still sign in as any owner.
func CheckNotResponsible(tx *resource.Tx, user *resource.Record) error {
	err := tx.RefuseIfUsed(user.Ref())
	var used *resource.UsedError
	if !errors.As(err, &used) {
		return err
	}
	var names []string
	for _, source := range used.Users {
		name := "the SSO configuration " + strconv.Quote(source.Name)
		if source.Kind == tenant.KindOrganisation {
			name = "the settings auth_settings.jwks_url or jwks"
		}
		names = append(names, name)
	}
	return fault.New(fault.Conflict, "id", "the user last saved "+strings.Join(names, " and ")+", which determines who every user is; another owner must save or remove it first")
}

func userRef(org store.Scope, id string) resource.Ref {
	return resource.Ref{Scope: org.Organisation(), Kind: KindUser, ID: id}
}
