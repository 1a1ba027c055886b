package membership

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// CheckKeyOwner checks that a user may have a key in a workspace, as a member or as an admin of the
// organization, and makes the transaction conditional on it. field names the user in the fault,
// which does not reveal who exists elsewhere.
func CheckKeyOwner(tx *resource.Tx, sc store.Scope, user, field string) (*User, error) {
	refused := fault.Invalid(field, "must name a member of the workspace")
	rec, u, ok, err := ByID(tx, sc, user)
	if err != nil {
		return nil, err
	}
	if !ok || u.Leaving {
		return nil, refused
	}
	if u.MemberOf(sc.Workspace) {
		member, there, err := tx.Get(sc, KindMember, user)
		if err != nil {
			return nil, err
		}
		if there {
			return u, tx.RequireStatus(member.Ref(), member.Status)
		}
	}
	if !u.IsOrganisationAdmin() {
		return nil, refused
	}
	return u, tx.RequireStatus(rec.Ref(), rec.Status)
}

// standardScopes are the default scopes of a user's key.
var standardScopes = []string{"completions.write", "prompts.list", "prompts.read", "prompts.render"}

// CreateUserKey creates the key of a user who joins a workspace. It returns the raw key. If sealer is
// not nil, the raw key is also sealed with the key until its user collects it. rank is that of
// the causing principal: the key never exceeds it. If the workspace's key limit is reached, it
// returns nil.
func CreateUserKey(tx *resource.Tx, r *resource.Resources, sealer seal.Sealer, sc store.Scope, user *resource.Record, scopes []string, rank identity.Rank, actor string) (*resource.Record, string, error) {
	org, err := tenant.ReadSettings(tx, sc)
	if err != nil {
		return nil, "", err
	}
	ws, ok, err := tx.Get(sc.Organisation(), tenant.KindWorkspace, sc.Workspace)
	if err != nil || !ok {
		return nil, "", err
	}
	full, err := KeyLimitReached(tx, r, sc, &org.Settings)
	if err != nil || full {
		return nil, "", err
	}
	form, err := tenant.ReadWorkspace(ws)
	if err != nil {
		return nil, "", err
	}
	if len(scopes) == 0 {
		scopes = standardScopes
	}
	k := identity.Key{Type: identity.WorkspaceUser, UserID: user.ID, CreationMode: "auto", Rank: rank, Scopes: identity.NewScopeSet(scopes...).Sorted()}
	k.ExpiresAt, _ = org.Settings.Expiry(nil, false, now(tx))
	Rotating(&k, &org.Settings, now(tx))
	k.Defaults.Metadata = org.Settings.KeyMetadata.Complete(nil)
	raw := ""
	raw, k.Secret = identity.NewSecret()
	rec := &resource.Record{
		Scope: sc, Kind: identity.KindKey, ID: resource.NewID(), Name: "Key of " + user.Name, Status: identity.StatusActive, CreatedBy: actor, UpdatedBy: actor,
		Fields: map[string]string{"type": string(k.Type), "user": user.ID},
	}
	if err := useConfig(tx, rec, &k, form.Defaults.UserAPIKeyConfig); err != nil {
		return nil, "", err
	}
	if sealer != nil {
		if err := rec.SetSecret(tx.Context(), sealer, identity.UncollectedSecret, []byte(raw)); err != nil {
			return nil, "", fault.Unavailable(err)
		}
	}
	if rec.Body, err = json.Marshal(&k); err != nil {
		return nil, "", fmt.Errorf("people: encode key: %w", err)
	}
	if err := tx.Create(rec); err != nil {
		return nil, "", err
	}
	if err := identity.Reschedule(tx, rec.Ref(), nil, &k); err != nil {
		return nil, "", err
	}
	return rec, raw, identity.Stage(tx, rec, &k, ws.Slug)
}

// keyScopes returns the scopes of the key of an invitation, or nil.
func (i *Invite) keyScopes() []string {
	if i.Keys == nil {
		return nil
	}
	return i.Keys.Scopes
}

// rank returns the rank of the inviting principal.
func (i *Invite) rank() identity.Rank { return cmp.Or(i.Rank, identity.RankOwner) }

// CreateUserKeyIfRequested is CreateUserKey for a user who joins a workspace by an invitation, if the invitation
// names scopes or the settings require a key. Without a sealer the caller shows the raw key.
// With one only its user can collect it.
func CreateUserKeyIfRequested(tx *resource.Tx, r *resource.Resources, sealer seal.Sealer, workspace string, user *resource.Record, i *Invite) (*resource.Record, string, error) {
	sc := store.Scope{Org: user.Scope.Org, Workspace: workspace}
	creates, err := Creates(tx, sc)
	scopes := i.keyScopes()
	if err != nil || !creates && len(scopes) == 0 {
		return nil, "", err
	}
	return CreateUserKey(tx, r, sealer, sc, user, scopes, i.rank(), user.ID)
}

// Creates reports whether users who join a workspace get a key.
func Creates(tx *resource.Tx, sc store.Scope) (bool, error) {
	org, err := tenant.ReadSettings(tx, sc)
	if err != nil {
		return false, err
	}
	ws, ok, err := tx.Get(sc.Organisation(), tenant.KindWorkspace, sc.Workspace)
	if err != nil || !ok {
		return false, err
	}
	form, err := tenant.ReadWorkspace(ws)
	if err != nil {
		return false, err
	}
	return org.Settings.CreatesKeys(form.IsDefault), nil
}

// kindConfig is the kind of configs.
const kindConfig resource.Kind = "CONFIG"

// useConfig binds the workspace's config for keys, if it exists.
func useConfig(tx *resource.Tx, rec *resource.Record, k *identity.Key, name string) error {
	if name == "" {
		return nil
	}
	cfg, ok, err := tx.Get(rec.Scope, kindConfig, name)
	if err != nil || !ok || cfg.Archived() {
		return err
	}
	k.Defaults.ConfigID = cfg.ID
	return tx.Use(cfg.Ref(), rec.Ref())
}

// Rotating sets the rotation that the organization requires, unless the key has one.
func Rotating(k *identity.Key, s *tenant.Settings, at time.Time) {
	if s.RotationPeriod == 0 || k.Rotation != nil {
		return
	}
	k.Rotation = &identity.RotationPolicy{PeriodDays: int(s.RotationPeriod)}
	k.Rotation.NextAt = k.Rotation.Next(at)
}

// KeyLimitReached reports whether a workspace has reached its limit of user keys. With a limit, new keys
// of a workspace are created sequentially.
func KeyLimitReached(tx *resource.Tx, r *resource.Resources, sc store.Scope, s *tenant.Settings) (bool, error) {
	if s.MaxKeys == 0 {
		return false, nil
	}
	key := sc.Partition().Key("USERKEYS")
	turn, ok, err := r.Store().Table(store.Control).Get(tx.Context(), key, true)
	if err != nil {
		return false, fault.Unavailable(err)
	}
	rows, err := tx.List(sc, identity.KindKey) // not the cached list: another key may have just been created
	if err != nil {
		return false, err
	}
	count := int64(0)
	for i := range rows {
		if rows[i].Fields["type"] == string(identity.WorkspaceUser) {
			count++
		}
	}
	if count >= s.MaxKeys {
		return true, nil
	}
	unchanged := store.IfAbsent()
	if ok {
		unchanged = store.IfEqual(store.At("n"), turn.Int("n"))
	}
	tx.Do(store.Action{Table: store.Control, Update: &store.Update{
		Key: key, Add: []store.Increment{{Path: store.At("n"), By: 1}}, If: []store.Cond{unchanged},
	}}, nil)
	return false, nil
}
