package chain

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// saved is a saved guardrail, prepared on first use.
type saved struct {
	record resource.Record
	ready  atomic.Pointer[Hook]
}

func decode(rec resource.Record) (*saved, error) { return &saved{record: rec}, nil }

// Load returns a saved guardrail of a workspace or of its organization by id or slug. A missing
// guardrail is an error, so that no request is served without its checks. Errors of opening its
// secrets are not cached.
func (k *CheckRegistry) Load(ctx context.Context, v *resource.View, sc store.Scope, ref string, sealer seal.Sealer) (*Hook, error) {
	ref = strings.TrimPrefix(ref, "@")
	for _, in := range [...]store.Scope{sc, sc.Organisation()} {
		s, ok, err := resource.Load(ctx, v, in, guard.KindGuardrail, ref, decode)
		if err != nil {
			return nil, err
		}
		if ok && !s.record.Archived() {
			return s.hook(ctx, k, sealer)
		}
	}
	return nil, fault.Newf(fault.InvalidConfig, "guardrails", "There is no guardrail %q in this workspace or its organization: the config or the defaults that name it must be changed", fault.Clip(ref, 300))
}

func (s *saved) hook(ctx context.Context, k *CheckRegistry, sealer seal.Sealer) (*Hook, error) {
	if h := s.ready.Load(); h != nil {
		return h, nil
	}
	var opened map[string][]byte
	if s.record.HasSecret(guard.SealedChecks) {
		var err error
		if opened, err = s.record.OpenSecrets(ctx, sealer); err != nil {
			return nil, fault.Unavailable(fmt.Errorf("chain: guardrail %s: %w", s.record.ID, err))
		}
	}
	g, err := guard.Decode(s.record, opened)
	if err != nil {
		return nil, err
	}
	h := k.Prepare(g.HookOf())
	s.ready.Store(h)
	return h, nil
}
