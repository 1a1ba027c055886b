// Package notices determines the recipients of notices: the webhooks of an organization and its
// workspaces, and the users that an event concerns.
package notices

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/ledger"
	"gateway/shared/notice"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// KindWebhook is the resource kind of webhooks, which live in the organization's
// scope or in that of a workspace.
const KindWebhook resource.Kind = "WEBHOOK"

// slots are the names under which the secrets of a webhook are sealed. They alternate, so
// that a secret can be renewed without opening the one before it.
var slots = [2]string{"secret_a", "secret_b"}

// Directory implements notice.Directory on the stored resources.
type Directory struct {
	Resources *resource.Resources
	Sealer    seal.Sealer
}

// Worker is the worker of an installation.
func Worker(c *app.Core) *notice.Worker {
	return &notice.Worker{Store: c.Store, Directory: &Directory{c.Resources, c.Sealer}, Transport: c.Transport, Mailer: c.Mailer, Now: c.Now}
}

// Targets implements notice.Directory.
func (d *Directory) Targets(ctx context.Context, sc store.Scope) ([]notice.Target, error) {
	scopes := []store.Scope{sc.Organisation()}
	if sc.Workspace != "" {
		scopes = append(scopes, sc)
	}
	lists, err := d.Resources.ListMany(ctx, scopes, KindWebhook, false)
	if err != nil {
		return nil, err
	}
	var out []notice.Target
	for n, rows := range lists {
		ids := make([]string, len(rows))
		for i := range rows {
			ids[i] = rows[i].ID
		}
		recs, err := d.Resources.GetMany(ctx, scopes[n], KindWebhook, ids)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			t, _, err := target(&recs[i])
			if err != nil {
				return nil, err
			}
			out = append(out, *t)
		}
	}
	return out, nil
}

func target(rec *resource.Record) (*notice.Target, *notice.Webhook, error) {
	w := new(notice.Webhook)
	if err := json.Unmarshal(rec.Body, w); err != nil {
		return nil, nil, fmt.Errorf("notices: webhook %s: %w", rec.ID, err)
	}
	return &notice.Target{Scope: rec.Scope, ID: rec.ID, URL: w.URL, Events: w.Events, Active: rec.Status == notice.StatusActive}, w, nil
}

// Target implements notice.Directory.
func (d *Directory) Target(ctx context.Context, sc store.Scope, id string) (*notice.Target, bool, error) {
	rec, ok, err := d.Resources.Get(ctx, sc, KindWebhook, id)
	if err != nil || !ok || rec.Archived() {
		return nil, false, err
	}
	t, w, err := target(&rec)
	if err != nil {
		return nil, false, err
	}
	opened, err := rec.OpenSecrets(ctx, d.Sealer)
	if err != nil {
		return nil, false, err
	}
	t.Secrets = []string{string(opened[slots[w.Slot&1]])}
	if old := opened[slots[w.Slot&1^1]]; old != nil && w.PreviousUntil != nil && d.Resources.Now().Before(*w.PreviousUntil) {
		t.Secrets = append(t.Secrets, string(old))
	}
	return t, true, nil
}

// Disable implements notice.Directory.
func (d *Directory) Disable(ctx context.Context, sc store.Scope, id, why string) error {
	return d.Resources.Change(ctx, sc, func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(sc, KindWebhook, id)
		if err != nil || !ok || rec.Status != notice.StatusActive {
			return err
		}
		_, w, err := target(&rec)
		if err != nil {
			return err
		}
		rec.Status, w.DisabledReason = notice.StatusDisabled, why
		if rec.Body, err = json.Marshal(w); err != nil {
			return err
		}
		if err := tx.Update(&rec); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			ResourceType: "webhooks", Action: audit.Update, ResourceID: id, WorkspaceID: sc.Workspace, StatusCode: 200,
			Details: map[string]string{"status": notice.StatusDisabled, "reason": why},
		})
	})
}

// Addresses implements notice.Directory. It contains no duplicates.
func (d *Directory) Addresses(ctx context.Context, e *notice.Event) ([]string, error) {
	org, a := store.Scope{Org: e.Org}, &e.Audience
	users, err := d.Resources.List(ctx, org, membership.KindUser)
	if err != nil {
		return nil, err
	}
	concerned := slices.Clone(a.Users)
	var out []string
	if a.Key != "" {
		owner, others, err := d.ofKey(ctx, e.Org, a.Key)
		if err != nil {
			return nil, err
		}
		concerned, out = append(concerned, owner), others
	}
	if a.Managers && e.Workspace != "" {
		members, err := d.Resources.List(ctx, e.Scope(), membership.KindMember)
		if err != nil {
			return nil, err
		}
		for i := range members {
			if membership.IsHigher(members[i].Fields["role"], membership.Member) {
				concerned = append(concerned, members[i].ID)
			}
		}
	}
	for i := range users {
		u := &users[i]
		if a.Admins && membership.IsHigher(u.Fields["role"], membership.Member) || slices.Contains(concerned, u.ID) {
			out = append(out, u.Fields["email"])
		}
	}
	spelled := make([]string, 0, len(out))
	for _, raw := range out {
		if address, ok := notice.Address(raw); ok {
			spelled = append(spelled, address)
		}
	}
	slices.Sort(spelled)
	return slices.Compact(spelled), nil
}

// Names implements notice.Directory.
func (d *Directory) Names(ctx context.Context, e *notice.Event) (n notice.Names, err error) {
	if e.Workspace != "" {
		rec, _, err := d.Resources.Get(ctx, store.Scope{Org: e.Org}, tenant.KindWorkspace, e.Workspace)
		if err != nil {
			return n, err
		}
		n.Workspace = rec.Name
	}
	if e.Audience.Key != "" {
		rec, _, err := d.key(ctx, e.Org, e.Audience.Key)
		if err != nil {
			return n, err
		}
		n.Key = rec.Name
	}
	id := e.Data["id"]
	for _, at := range subjects[e.Data["kind"]] {
		sc := e.Scope()
		if at.shared {
			sc = sc.Organisation()
		}
		rec, ok, err := d.Resources.Get(ctx, sc, at.kind, id)
		if err != nil {
			return n, err
		}
		if ok {
			n.Subject = rec.Name
			break
		}
	}
	return n, nil
}

// subject is where a subject of limits is stored: in the workspace, or shared by all of the
// organization.
type subject struct {
	kind   resource.Kind
	shared bool
}

// subjects are those with a name, by their kind in events. Names knows keys and workspaces
// already.
var subjects = map[ledger.Kind][]subject{
	ledger.Policy:      {{kind: ledger.KindUsagePolicy}},
	ledger.Integration: {{kind: provider.KindIntegration, shared: true}, {kind: provider.KindIntegration}},
	ledger.Provider:    {{kind: provider.KindProvider}},
}

// key finds a key of the organization or of one of its workspaces.
func (d *Directory) key(ctx context.Context, org, id string) (rec resource.Record, ok bool, err error) {
	sc, ok, err := identity.ScopeOf(ctx, d.Resources.Store(), org, id)
	if err != nil || !ok {
		return rec, false, err
	}
	return d.Resources.Get(ctx, sc, identity.KindKey, id)
}

// ofKey returns the owner of a key and the other recipients of its notices.
func (d *Directory) ofKey(ctx context.Context, org, id string) (owner string, others []string, err error) {
	rec, ok, err := d.key(ctx, org, id)
	if err != nil || !ok {
		return "", nil, err
	}
	var k identity.Key
	if err := json.Unmarshal(rec.Body, &k); err != nil {
		return "", nil, fmt.Errorf("notices: key %s: %w", id, err)
	}
	return k.UserID, k.AlertEmails, nil
}

// Overlap is how long a secret signs beside the one that replaces it.
const Overlap = 24 * time.Hour

// Renew sets a new secret for a webhook and returns it. The previous secret also signs for a
// while.
func Renew(ctx context.Context, s seal.Sealer, rec *resource.Record, w *notice.Webhook, now time.Time) (string, error) {
	if rec.HasSecret(slots[w.Slot&1]) {
		until := now.Add(Overlap).UTC().Truncate(time.Millisecond)
		w.Slot, w.PreviousUntil = w.Slot&1^1, &until
	}
	fresh := notice.NewSecret()
	return fresh, rec.SetSecret(ctx, s, slots[w.Slot&1], []byte(fresh))
}
