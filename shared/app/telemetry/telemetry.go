// Package telemetry makes the exporter of telemetry of an installation. It is not part of
// package app, which every function links.
package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"gateway/shared/app"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/observe"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Exporter sends telemetry to the destinations of an installation.
func Exporter(c *app.Core) *observe.Exporter {
	content := observe.StoredContent{Bucket: c.Bucket, Sealer: c.Sealer}
	authors := &Authors{Loader: c.Loader, Now: c.Now}
	own, err := observe.FromEnvironment(os.Getenv)
	if err != nil {
		slog.Error("telemetry of the process is not exported", "error", err.Error())
	}
	return &observe.Exporter{
		ProcessTarget: own, ProcessTransport: c.TrustedTransport,
		Directory: &observe.Stored{Resources: c.Resources, Sealer: c.Sealer, MayRead: authors.ReadsAllBodies}, Bodies: content.Bodies,
		Transport: c.Transport, Now: c.Now, OptIn: os.Getenv(observe.OptIn),
	}
}

// Authors knows what the authors of destinations may read now. Its fields are required.
type Authors struct {
	Loader *resource.Loader
	Now    func() time.Time
}

// readsLogs are the scopes that read logs with their bodies.
var readsLogs = []string{"logs.read", "logs.view"}

// ReadsAllBodies reports whether a user or a key, by its id, may read the logs of all users of
// the scope with their bodies. Other authors' destinations must not receive content.
func (a *Authors) ReadsAllBodies(ctx context.Context, sc store.Scope, author string) (bool, error) {
	v, err := a.Loader.Fresh(ctx, sc.Org)
	if err != nil || author == "" {
		return false, err
	}
	rank, ok, err := membership.LoadRank(ctx, v, sc, author)
	scopes := membership.ScopesOf(rank.Role())
	if err == nil && !ok {
		rank, scopes, err = a.key(ctx, v, sc, author)
	}
	if err != nil || rank == "" || !slices.ContainsFunc(readsLogs, func(s string) bool { return identity.NewScopeSet(scopes...).Has(s) }) {
		return false, err
	}
	if rank == identity.RankOwner {
		return true, nil
	}
	org, err := tenant.LoadSettings(ctx, v, sc)
	if err != nil {
		return false, err
	}
	for _, part := range []string{tenant.SeeBodies, tenant.SeeOthers} {
		if allowed, decided := org.Settings.Rule(string(rank), part); decided && !allowed {
			return false, nil
		}
	}
	return true, nil
}

// key returns the rank and the scopes of a service key of the workspace or the organization; ""
// if there is no such key, or if it is not valid any more.
func (a *Authors) key(ctx context.Context, v *resource.View, sc store.Scope, id string) (rank identity.Rank, scopes []string, err error) {
	type found struct {
		rank   identity.Rank
		scopes []string
		status string
		until  *time.Time
	}
	for _, place := range []store.Scope{sc, sc.Organisation()} {
		k, ok, err := resource.Load(ctx, v, place, identity.KindKey, id, func(rec resource.Record) (found, error) {
			var k identity.Key
			if err := json.Unmarshal(rec.Body, &k); err != nil {
				return found{}, fmt.Errorf("telemetry: decode key: %w", err)
			}
			rank, _ := k.Granted(rec.CreatedBy)
			return found{rank, k.Scopes, rec.Status, k.ExpiresAt}, nil
		})
		if err != nil {
			return "", nil, err
		}
		if ok && k.status == identity.StatusActive && (k.until == nil || a.Now().Before(*k.until)) {
			now, err := membership.LoadLimited(ctx, v, place, identity.KindKey, id, k.rank, identity.NewScopeSet(k.scopes...))
			return now.Rank, now.Scopes.Sorted(), err
		}
	}
	return "", nil, nil
}
