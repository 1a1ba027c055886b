package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"gateway/shared/blob"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Stored implements Directory with the stored resources. It reads destinations again after
// two seconds.
type Stored struct {
	Resources *resource.Resources
	Sealer    seal.Sealer
	// MayRead reports whether a user or a key, by its id, may read the content of all requests
	// of a scope now. Content is only sent while the author of a destination may.
	MayRead func(ctx context.Context, sc store.Scope, author string) (bool, error)

	mu    sync.Mutex
	known map[store.Scope]known
}

type known struct {
	targets []Target
	until   time.Time
}

// Limits of remembered content.
const (
	remembered = 2 * time.Second
	maxKnown   = 10_000
)

// Targets implements Directory. It gives the active destinations.
func (s *Stored) Targets(ctx context.Context, sc store.Scope) ([]Target, error) {
	now := s.Resources.Now()
	s.mu.Lock()
	k, ok := s.known[sc]
	s.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.targets, nil
	}
	targets, err := s.read(ctx, sc)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxKnown {
		s.known = map[store.Scope]known{}
	}
	s.known[sc] = known{targets, now.Add(remembered)}
	return targets, nil
}

func (s *Stored) read(ctx context.Context, sc store.Scope) (out []Target, err error) {
	scopes := []store.Scope{sc.Organisation()}
	if sc.Workspace != "" {
		scopes = append(scopes, sc)
	}
	lists, err := s.Resources.ListMany(ctx, scopes, KindDestination, false)
	if err != nil {
		return nil, err
	}
	for n, rows := range lists {
		var ids []string
		for i := range rows {
			if rows[i].Status == StatusActive {
				ids = append(ids, rows[i].ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		recs, err := s.Resources.GetMany(ctx, scopes[n], KindDestination, ids)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			t, err := s.target(ctx, &recs[i])
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		}
	}
	return out, nil
}

func (s *Stored) target(ctx context.Context, rec *resource.Record) (Target, error) {
	t := Target{Scope: rec.Scope, ID: rec.ID, Rev: rec.Rev}
	if err := json.Unmarshal(rec.Body, &t.Destination); err != nil {
		return t, fmt.Errorf("observe: destination %s: %w", rec.ID, err)
	}
	if t.Content {
		var err error
		if t.Content, err = s.MayRead(ctx, rec.Scope, t.ContentAuthor(rec)); err != nil {
			return t, err
		}
	}
	if !rec.HasSecret(SecretHeaders) {
		return t, nil
	}
	opened, err := rec.OpenSecrets(ctx, s.Sealer)
	if err != nil {
		return t, fmt.Errorf("observe: headers of destination %s: %w", rec.ID, err)
	}
	headers, bad := ParseHeaders(string(opened[SecretHeaders]))
	if len(bad) > 0 {
		return t, fmt.Errorf("observe: headers of destination %s %s", rec.ID, bad[0].Message)
	}
	t.Headers = headers
	return t, nil
}

// StoredContent reads the stored content of new records.
type StoredContent struct {
	Bucket blob.Bucket
	Sealer seal.Sealer
}

// Bodies is Exporter.Bodies. Content that cannot be read is not reported.
func (k *StoredContent) Bodies(ctx context.Context, r *usage.Record) (usage.Bodies, bool) {
	sealed, err := k.sealed(ctx, r)
	if err != nil || len(sealed) == 0 {
		return usage.Bodies{}, false
	}
	plain, err := k.Sealer.Open(ctx, r.BodiesBinding(), sealed)
	if err != nil {
		return usage.Bodies{}, false
	}
	b, err := usage.DecodeBodies(plain)
	return b, err == nil
}

func (k *StoredContent) sealed(ctx context.Context, r *usage.Record) ([]byte, error) {
	switch {
	case len(r.Bodies) > 0:
		return r.Bodies, nil
	case r.Blob != "":
		return k.Bucket.Get(ctx, r.Blob, usage.MaxEvent)
	case r.Pack.Key != "":
		in, _, err := k.Bucket.Open(ctx, r.Pack.Key, r.Pack.Offset, r.Pack.Length)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return io.ReadAll(io.LimitReader(in, r.Pack.Length))
	}
	return nil, nil
}
