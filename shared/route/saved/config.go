package saved

import (
	"context"
	"fmt"
	"sync/atomic"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Config is a config made ready for requests. It is shared between requests
// under one View and never changed.
type Config struct {
	Record resource.Record
	tree   atomic.Pointer[route.Tree] // compiled once
}

// LoadConfig finds a config by its id or slug.
func LoadConfig(ctx context.Context, v *resource.View, sc store.Scope, ref string) (*Config, bool, error) {
	return resource.Load(ctx, v, sc, route.KindConfig, ref, func(rec resource.Record) (*Config, error) {
		return &Config{Record: rec}, nil
	})
}

// Compile returns the config's tree. A config with credentials is sealed; a failure to open it
// is not cached.
func (s *Config) Compile(ctx context.Context, sealer seal.Sealer) (*route.Tree, error) {
	if t := s.tree.Load(); t != nil {
		return t, nil
	}
	body := s.Record.Body
	if s.Record.HasSecret(route.SealedConfig) {
		secrets, err := s.Record.OpenSecrets(ctx, sealer)
		if err != nil {
			return nil, fault.Unavailable(fmt.Errorf("relay: config %s: %w", s.Record.ID, err))
		}
		body = secrets[route.SealedConfig]
	}
	cfg, details := route.ParseSaved(body)
	if len(details) > 0 {
		return nil, fmt.Errorf("relay: config %s: %s: %s", s.Record.ID, details[0].Field, details[0].Message)
	}
	t, details := cfg.Compile()
	if len(details) > 0 {
		return nil, fmt.Errorf("relay: config %s: %s: %s", s.Record.ID, details[0].Field, details[0].Message)
	}
	s.tree.Store(t)
	return t, nil
}
